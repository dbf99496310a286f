# The page of `remat report`: web/ and the chart library, put into the library as bytes.
# Another computer's files are no use in finding it: it is text, and this computer's does for any target.
if(REMAT_CHART_JS AND NOT EXISTS "${REMAT_CHART_JS}")
  unset(REMAT_CHART_JS CACHE) # the package was removed since; it may be elsewhere now
endif()
find_file(REMAT_CHART_JS NAMES chart.min.js Chart.min.js
          PATHS /usr/share/javascript/chart.js /usr/share/javascript /usr/local/share/javascript/chart.js NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH
          DOC "Chart.js 3, as one minified file")
if(NOT REMAT_CHART_JS)
  # CMake leaves lines as they are that begin with a space.
  message(FATAL_ERROR " remat: Chart.js is missing. On Debian this installs it:\n"
    "     sudo apt-get install --reinstall libjs-chart.js\n"
    " Elsewhere, say -DREMAT_CHART_JS=path/to/chart.min.js")
endif()
file(READ ${REMAT_CHART_JS} chart_head LIMIT 200)
string(REGEX MATCH "Chart\\.js v[0-9.]+" REMAT_CHART_NAME "${chart_head}")

set(REMAT_PAGE ${CMAKE_CURRENT_BINARY_DIR}/page)
# A copy, so that a build goes on where the package is removed after configuring.
configure_file(${REMAT_CHART_JS} ${REMAT_PAGE}/chart.js COPYONLY)
file(GLOB REMAT_WEB CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/web/*.* ${CMAKE_CURRENT_SOURCE_DIR}/web/vendor/*.*)
add_custom_command(OUTPUT ${REMAT_PAGE}/page_head.html ${REMAT_PAGE}/page_tail.html
  COMMAND ${CMAKE_COMMAND} -DWEB=${CMAKE_CURRENT_SOURCE_DIR}/web -DCHART=${REMAT_PAGE}/chart.js -DOUT=${REMAT_PAGE}
          -P ${CMAKE_CURRENT_LIST_DIR}/assemble_page.cmake
  DEPENDS ${REMAT_WEB} ${REMAT_PAGE}/chart.js ${CMAKE_CURRENT_LIST_DIR}/assemble_page.cmake)
set_source_files_properties(src/report/page_parts.c PROPERTIES
  COMPILE_DEFINITIONS "REMAT_PAGE_FOLDER=\"${REMAT_PAGE}\""
  OBJECT_DEPENDS "${REMAT_PAGE}/page_head.html;${REMAT_PAGE}/page_tail.html")
set_source_files_properties(src/report/doctor.c PROPERTIES COMPILE_DEFINITIONS "REMAT_CHART_NAME=\"${REMAT_CHART_NAME}\"")
