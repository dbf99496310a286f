# What `make install` puts where: the tool, the libraries and headers, how to find them, manual pages and completions.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS remat_cli)
install(TARGETS remat_static remat_shared EXPORT remat)
install(DIRECTORY include/remat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# find_package(remat): remat::remat is the shared library, remat::static the other.
set_target_properties(remat_shared PROPERTIES EXPORT_NAME remat)
set_target_properties(remat_static PROPERTIES EXPORT_NAME static)
set(REMAT_CMAKE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/remat)
install(EXPORT remat NAMESPACE remat:: FILE remat-targets.cmake DESTINATION ${REMAT_CMAKE_FOLDER})
configure_package_config_file(cmake/remat-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/remat-config.cmake
                              INSTALL_DESTINATION ${REMAT_CMAKE_FOLDER})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/remat-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/remat-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/remat-config-version.cmake
        DESTINATION ${REMAT_CMAKE_FOLDER})

# The prefix follows from where the file is, so that `cmake --install --prefix` and moved trees are right.
file(RELATIVE_PATH REMAT_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" REMAT_PC_TO_PREFIX "${REMAT_PC_TO_PREFIX}")
configure_file(cmake/remat.pc.in ${CMAKE_CURRENT_BINARY_DIR}/remat.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/remat.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Manual pages and completions are written by the program that was just built: they cannot disagree with it. When cross
# compiling, that takes an emulator (CMAKE_CROSSCOMPILING_EMULATOR), or the same program built for this computer.
set(REMAT_TELLER $<TARGET_FILE:remat_cli>)
set(REMAT_TELLER_NEEDS remat_cli)
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  set(REMAT_HOST_PROGRAM "" CACHE FILEPATH "remat of this version for this computer; empty: one is built")
  if(REMAT_HOST_PROGRAM)
    set(REMAT_TELLER ${REMAT_HOST_PROGRAM})
    set(REMAT_TELLER_NEEDS ${REMAT_HOST_PROGRAM})
  else()
    include(ExternalProject)
    set(REMAT_TELLER ${CMAKE_CURRENT_BINARY_DIR}/host/remat)
    set(REMAT_TELLER_NEEDS remat_host)
    ExternalProject_Add(remat_host SOURCE_DIR ${CMAKE_CURRENT_SOURCE_DIR} BINARY_DIR ${CMAKE_CURRENT_BINARY_DIR}/host
      CONFIGURE_COMMAND ${CMAKE_COMMAND} -E env --unset=CC --unset=CFLAGS --unset=LDFLAGS
        ${CMAKE_COMMAND} -S <SOURCE_DIR> -B <BINARY_DIR> -DREMAT_CHART_JS=${REMAT_CHART_JS}
      BUILD_COMMAND ${CMAKE_COMMAND} --build <BINARY_DIR> --target remat_cli
      BUILD_ALWAYS ON INSTALL_COMMAND "" PREFIX ${CMAKE_CURRENT_BINARY_DIR}/host-build)
  endif()
endif()
set(REMAT_GENERATED ${CMAKE_CURRENT_BINARY_DIR}/generated)
file(GLOB REMAT_MANUAL CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/man/*)
add_custom_command(OUTPUT ${REMAT_GENERATED}/man/remat.1 ${REMAT_GENERATED}/completions/_remat
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${REMAT_GENERATED}
  COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/scripts/manual.sh ${REMAT_TELLER} ${REMAT_GENERATED}/man
          ${CMAKE_CROSSCOMPILING_EMULATOR}
  COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/scripts/completions.sh ${REMAT_TELLER} ${REMAT_GENERATED}/completions
          ${CMAKE_CROSSCOMPILING_EMULATOR}
  DEPENDS ${REMAT_TELLER_NEEDS} scripts/manual.sh scripts/manual.awk scripts/completions.sh ${REMAT_MANUAL})
if(NOT REMAT_SANITIZE)
  add_custom_target(remat_manual ALL DEPENDS ${REMAT_GENERATED}/man/remat.1 ${REMAT_GENERATED}/completions/_remat)
endif()
install(DIRECTORY ${REMAT_GENERATED}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${REMAT_GENERATED}/completions/remat.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME remat)
install(FILES ${REMAT_GENERATED}/completions/_remat DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES LICENSE web/chart.licence.txt DESTINATION ${CMAKE_INSTALL_DOCDIR})
