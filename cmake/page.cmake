# The page of `remat report`: web/ and the chart library, put into the library as bytes.
find_file(REMAT_CHART_JS NAMES chart.min.js Chart.min.js
          PATHS /usr/share/javascript/chart.js /usr/share/javascript /usr/local/share/javascript/chart.js NO_DEFAULT_PATH
          DOC "Chart.js 3, as one minified file")
if(NOT REMAT_CHART_JS)
  message(FATAL_ERROR "Chart.js is missing: install libjs-chart.js, or say -DREMAT_CHART_JS=path/to/chart.min.js")
endif()
file(READ ${REMAT_CHART_JS} chart_head LIMIT 200)
string(REGEX MATCH "Chart\\.js v[0-9.]+" REMAT_CHART_NAME "${chart_head}")

set(REMAT_PAGE ${CMAKE_CURRENT_BINARY_DIR}/page)
file(GLOB REMAT_WEB CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/web/*.*)
add_custom_command(OUTPUT ${REMAT_PAGE}/page_head.html ${REMAT_PAGE}/page_tail.html
  COMMAND ${CMAKE_COMMAND} -DWEB=${CMAKE_CURRENT_SOURCE_DIR}/web -DCHART=${REMAT_CHART_JS} -DOUT=${REMAT_PAGE}
          -P ${CMAKE_CURRENT_LIST_DIR}/assemble_page.cmake
  DEPENDS ${REMAT_WEB} ${REMAT_CHART_JS} ${CMAKE_CURRENT_LIST_DIR}/assemble_page.cmake)
set_source_files_properties(src/report/page_parts.c PROPERTIES
  COMPILE_DEFINITIONS "REMAT_PAGE_FOLDER=\"${REMAT_PAGE}\""
  OBJECT_DEPENDS "${REMAT_PAGE}/page_head.html;${REMAT_PAGE}/page_tail.html")
set_source_files_properties(src/report/doctor.c PROPERTIES COMPILE_DEFINITIONS "REMAT_CHART_NAME=\"${REMAT_CHART_NAME}\"")
