# Counters for `make coverage`, in all that is shipped and in nothing else. Without optimization every condition of the
# source is a branch of its own; an optimizing compiler merges some and drops others. Threads share the counters, so that
# these are updated atomically. Functions that are always inlined are counted once, not once for each place that they are
# inlined into with constants: most branches of such a copy cannot run. (System headers write __always_inline__.)
add_library(remat_counters INTERFACE)
target_compile_options(remat_counters INTERFACE -O0 --coverage -fprofile-update=atomic -Dalways_inline=unused)
foreach(target remat_objects remat_reference_fp32 remat_reference_fp64 remat_portable remat_avx2 remat_avx512
               remat_avx512bf16 remat_amx remat_cli)
  if(TARGET ${target})
    target_link_libraries(${target} PRIVATE remat_counters)
  endif()
endforeach()
target_link_options(remat_static INTERFACE --coverage)
target_link_options(remat_shared PRIVATE --coverage)
