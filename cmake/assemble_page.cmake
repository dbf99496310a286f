# Puts the report's page together from web/ and the chart library: page_head.html ends where the document begins,
# page_tail.html goes on behind it.
#   cmake -DWEB=web -DCHART=chart.min.js -DOUT=folder -P assemble_page.cmake
cmake_minimum_required(VERSION 3.18)
file(READ ${WEB}/page.html page)
file(READ ${WEB}/page.css style)
file(READ ${WEB}/chart.licence.txt licence)
file(READ ${CHART} chart)
file(READ ${WEB}/vendor/dagre.min.js layout)
file(READ ${WEB}/vendor/dagre.licence.txt layout_licence)
# It has control characters in its strings: the page has none.
string(ASCII 1 control)
string(REPLACE "${control}" "\\x01" layout "${layout}")

# All scripts share one scope, in this order.
set(script "")
foreach(part numbers theme memory_data memory_marks memory_chart arena_map schedule_map graph_map curve_chart run_charts layer_table summary main)
  file(READ ${WEB}/${part}.js text)
  string(APPEND script "${text}\n")
endforeach()

foreach(text "${chart}" "${layout}" "${script}")
  string(FIND "${text}" "</script" inside)
  if(NOT inside EQUAL -1)
    message(FATAL_ERROR "a script of the page contains </script, which would end it")
  endif()
endforeach()

string(FIND "${page}" "@DOCUMENT@" at)
string(SUBSTRING "${page}" 0 ${at} head)
math(EXPR behind "${at} + 10")
string(SUBSTRING "${page}" ${behind} -1 tail)
string(REPLACE "@STYLE@" "${style}" head "${head}")
string(REPLACE "@LICENCE@" "${licence}\n${layout_licence}" head "${head}")
string(REPLACE "@CHART@" "${chart}" tail "${tail}")
string(REPLACE "@LAYOUT@" "${layout}" tail "${tail}")
string(REPLACE "@SCRIPT@" "${script}" tail "${tail}")
file(WRITE ${OUT}/page_head.html "${head}")
file(WRITE ${OUT}/page_tail.html "${tail}")
foreach(part head tail)
  if("${${part}}" MATCHES "@(STYLE|LICENCE|CHART|LAYOUT|SCRIPT|DOCUMENT)@")
    message(FATAL_ERROR "page_${part}.html still has a placeholder")
  endif()
endforeach()
