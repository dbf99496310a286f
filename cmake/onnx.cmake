# Reading ONNX files, for the command line tool. It needs protobuf-c; without it everything else is built.
option(REMAT_ONNX "read ONNX files where protobuf-c is found" ON)
set(REMAT_HAS_ONNX OFF)
if(REMAT_ONNX)
  find_program(REMAT_PROTOC_C protoc-c DOC "the compiler of protobuf-c")
  find_path(REMAT_PROTOBUF_C_INCLUDE protobuf-c/protobuf-c.h DOC "the headers of protobuf-c")
  find_library(REMAT_PROTOBUF_C NAMES libprotobuf-c.a protobuf-c DOC "the library protobuf-c")
  if(REMAT_PROTOC_C AND REMAT_PROTOBUF_C_INCLUDE AND REMAT_PROTOBUF_C)
    set(REMAT_HAS_ONNX ON)
  else()
    message(STATUS "remat: protobuf-c is missing, so ONNX files will not be read. On Debian this installs it:\n"
      "     sudo apt-get install protobuf-c-compiler libprotobuf-c-dev")
  endif()
endif()
if(NOT REMAT_HAS_ONNX)
  return()
endif()

set(onnx ${CMAKE_CURRENT_SOURCE_DIR}/importers/onnx)
set(onnx_made ${CMAKE_CURRENT_BINARY_DIR}/onnx)
file(MAKE_DIRECTORY ${onnx_made})
add_custom_command(OUTPUT ${onnx_made}/onnx_subset.pb-c.c ${onnx_made}/onnx_subset.pb-c.h
  COMMAND ${REMAT_PROTOC_C} --proto_path=${onnx} --c_out=${onnx_made} onnx_subset.proto
  DEPENDS ${onnx}/onnx_subset.proto)
file(GLOB onnx_sources CONFIGURE_DEPENDS ${onnx}/*.c)
add_library(remat_onnx STATIC ${onnx_sources} ${onnx_made}/onnx_subset.pb-c.c)
set_source_files_properties(${onnx_made}/onnx_subset.pb-c.c PROPERTIES COMPILE_OPTIONS -w) # not our code
# The headers of others are not judged by our warnings.
target_include_directories(remat_onnx SYSTEM PUBLIC ${onnx_made} ${REMAT_PROTOBUF_C_INCLUDE})
target_include_directories(remat_onnx PUBLIC ${onnx})
target_link_libraries(remat_onnx PUBLIC remat_static ${REMAT_PROTOBUF_C})
if(REMAT_FUZZ)
  target_compile_options(remat_onnx PRIVATE ${REMAT_FUZZ_OPTIONS})
endif()
