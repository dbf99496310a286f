# The device cuda, where nvcc is found. CUDA's runtime is linked into the library; the driver and cuBLAS are loaded when the device is
# opened, so that everything else works without them.
option(REMAT_CUDA "build the device cuda where nvcc is found" ON)
set(REMAT_CUDA_ARCHITECTURES "80;90a" CACHE STRING "compute capabilities to build kernels for; the first also as PTX for later ones")
set(REMAT_HAS_CUDA OFF)
if(REMAT_CUDA AND NOT CMAKE_CROSSCOMPILING AND NOT REMAT_SANITIZE AND NOT REMAT_SANITIZE_THREADS AND NOT REMAT_FUZZ
   AND NOT REMAT_COVERAGE)
  find_program(REMAT_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  find_program(REMAT_NVCC_HOST NAMES g++ clang++)
  mark_as_advanced(REMAT_NVCC REMAT_NVCC_HOST)
  if(REMAT_NVCC AND REMAT_NVCC_HOST)
    get_filename_component(cuda_root "${REMAT_NVCC}" REALPATH)
    get_filename_component(cuda_root "${cuda_root}" DIRECTORY)
    get_filename_component(cuda_root "${cuda_root}" DIRECTORY)
    find_library(REMAT_CUDART NAMES cudart_static HINTS ${cuda_root}/lib64 ${cuda_root}/lib ${cuda_root}/targets/x86_64-linux/lib)
    find_path(REMAT_CUDA_INCLUDE cublasLt.h HINTS ${cuda_root}/include ${cuda_root}/targets/x86_64-linux/include)
    mark_as_advanced(REMAT_CUDART REMAT_CUDA_INCLUDE)
    if(REMAT_CUDART AND REMAT_CUDA_INCLUDE)
      set(REMAT_HAS_CUDA ON)
    endif()
  endif()
endif()

file(GLOB REMAT_CUDA_SOURCES CONFIGURE_DEPENDS src/backend/cuda/*.c)
file(GLOB REMAT_CUDA_KERNELS CONFIGURE_DEPENDS src/backend/cuda/*.cu)
list(REMOVE_ITEM REMAT_SOURCES ${REMAT_CUDA_SOURCES})

# Compiles a .cu file with nvcc; OUT gets the object's path.
function(add_cuda_object source out)
  get_filename_component(name ${source} NAME_WE)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${name}.o)
  set(codes "")
  foreach(architecture ${REMAT_CUDA_ARCHITECTURES})
    list(APPEND codes -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET REMAT_CUDA_ARCHITECTURES 0 oldest)
  list(APPEND codes -gencode arch=compute_${oldest},code=compute_${oldest})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/cuda)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_C_COMPILER_LAUNCHER} ${REMAT_NVCC} -ccbin ${REMAT_NVCC_HOST} -c -O3 -std=c++17 ${codes} -Xcompiler -fPIC,-Wall,-Wextra,-fno-exceptions,-fno-threadsafe-statics
            -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include -MD -MF ${object}.d ${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d COMMENT "Building CUDA object ${name}" VERBATIM)
  set(${out} ${object} PARENT_SCOPE)
endfunction()

if(REMAT_HAS_CUDA)
  set(REMAT_CUDA_OBJECTS "")
  foreach(source ${REMAT_CUDA_KERNELS})
    add_cuda_object(${source} object)
    list(APPEND REMAT_CUDA_OBJECTS ${object})
  endforeach()
  # Two libraries are made of the objects: one target builds them once.
  add_custom_target(remat_cuda_kernels DEPENDS ${REMAT_CUDA_OBJECTS})
  add_library(remat_cuda OBJECT ${REMAT_CUDA_SOURCES})
  target_include_directories(remat_cuda PRIVATE include src)
  target_include_directories(remat_cuda SYSTEM PRIVATE ${REMAT_CUDA_INCLUDE})
  target_link_libraries(remat_cuda PUBLIC Threads::Threads m ${CMAKE_DL_LIBS})
  message(STATUS "CUDA: ${REMAT_NVCC}, for ${REMAT_CUDA_ARCHITECTURES}")
endif()
