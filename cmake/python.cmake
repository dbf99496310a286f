# The Python package, ready to import from BUILD/python: links to the modules of python/remat, the declarations that are
# made from the public headers, and the shared library. `make python` makes a wheel of it.
set(REMAT_PYTHON "" CACHE FILEPATH "a Python 3 that has cffi and numpy; empty: python3, or /usr/bin/python3")

# Sets REMAT_PYTHON_FOUND to the first Python that can import the modules.
function(remat_find_python modules)
  foreach(candidate ${REMAT_PYTHON} python3 /usr/bin/python3)
    execute_process(COMMAND ${candidate} -c "import sys, ${modules}; print(sys.executable)" RESULT_VARIABLE code
                    OUTPUT_VARIABLE path ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(code EQUAL 0)
      set(REMAT_PYTHON_FOUND ${path} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(REMAT_PYTHON_FOUND "" PARENT_SCOPE)
endfunction()
remat_find_python("cffi, numpy, pytest")
set(REMAT_PYTHON_TESTS ${REMAT_PYTHON_FOUND})
if(NOT REMAT_PYTHON_FOUND)
  remat_find_python("cffi, numpy")
endif()

if(REMAT_PYTHON_FOUND AND NOT CMAKE_CROSSCOMPILING)
  set(REMAT_PACKAGE ${CMAKE_CURRENT_BINARY_DIR}/python/remat)
  file(GLOB_RECURSE REMAT_MODULES CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/python/remat python/remat/*.py
       python/remat/py.typed)
  # Links to modules that are gone go as well.
  file(GLOB_RECURSE linked RELATIVE ${REMAT_PACKAGE} ${REMAT_PACKAGE}/*.py)
  list(REMOVE_ITEM linked _declarations.py ${REMAT_MODULES})
  foreach(module ${linked})
    file(REMOVE ${REMAT_PACKAGE}/${module})
  endforeach()
  foreach(module ${REMAT_MODULES})
    get_filename_component(folder ${REMAT_PACKAGE}/${module} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/python/remat/${module} ${REMAT_PACKAGE}/${module} SYMBOLIC)
  endforeach()
  file(GLOB REMAT_PUBLIC_HEADERS CONFIGURE_DEPENDS include/remat/*.h)
  add_custom_command(OUTPUT ${REMAT_PACKAGE}/_declarations.py
    COMMAND ${REMAT_PYTHON_FOUND} ${CMAKE_CURRENT_SOURCE_DIR}/python/declare.py ${CMAKE_C_COMPILER}
            ${CMAKE_CURRENT_SOURCE_DIR}/include ${REMAT_PACKAGE}/_declarations.py
    COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:remat_shared>
            ${REMAT_PACKAGE}/libremat.so.${PROJECT_VERSION_MAJOR}
    DEPENDS python/declare.py ${REMAT_PUBLIC_HEADERS} VERBATIM)
  add_custom_target(remat_python ALL DEPENDS ${REMAT_PACKAGE}/_declarations.py)
  add_dependencies(remat_python remat_shared)
endif()
