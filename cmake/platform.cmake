# What Remat needs of the machine that it is built for, said before anything is compiled.
include(CheckCSourceCompiles)
include(CheckIncludeFile)
include(CheckSymbolExists)
if(NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
  math(EXPR bits "8 * ${CMAKE_SIZEOF_VOID_P}")
  message(FATAL_ERROR " remat: this compiler makes ${bits}-bit programs, and Remat needs a 64-bit target.")
endif()
# scripts/configure.sh sets it, so that this file has a say where CMake's own trial of the compiler fails.
set(CMAKE_TRY_COMPILE_TARGET_TYPE EXECUTABLE)
check_c_source_compiles("int main(void) { return 0; }" REMAT_COMPILER_LINKS)
if(NOT REMAT_COMPILER_LINKS)
  message(FATAL_ERROR " remat: ${CMAKE_C_COMPILER} ${CMAKE_C_FLAGS} cannot link a program. Is the C library's package for developers "
    "installed? What the compiler said is in ${CMAKE_BINARY_DIR}/CMakeFiles.")
endif()
check_symbol_exists(argp_parse argp.h REMAT_HAS_ARGP)
if(NOT REMAT_HAS_ARGP)
  message(FATAL_ERROR " remat: the C library of ${CMAKE_C_COMPILER} has no argp_parse. Remat needs the GNU C library; "
    "musl, for one, lacks it.")
endif()

# xxHash is one header that is compiled in. Where a cross compiler lacks it, this computer's is as good.
check_include_file(xxhash.h REMAT_HAS_XXHASH)
if(NOT REMAT_HAS_XXHASH)
  find_path(REMAT_XXHASH xxhash.h NO_CMAKE_FIND_ROOT_PATH)
  if(NOT REMAT_XXHASH)
    message(FATAL_ERROR " remat: the header xxhash.h is missing. On Debian this installs it:\n"
      "     sudo apt-get install --reinstall libxxhash-dev")
  endif()
  # Copied: the folder that it is in holds the headers of this computer's C library, too.
  file(GLOB headers ${REMAT_XXHASH}/xxh*.h)
  file(COPY ${headers} DESTINATION ${CMAKE_CURRENT_BINARY_DIR}/xxhash)
  include_directories(SYSTEM ${CMAKE_CURRENT_BINARY_DIR}/xxhash)
endif()
