#!/bin/sh
# The default build is hardened: what is called through a table is fixed at the start, stacks are guarded, calls are checked.
. tests/cli/support/expect.sh
command -v readelf >/dev/null 2>&1 || { echo "readelf is not installed: skipped"; exit 77; }
[ "$REMAT_SANITIZE" != ON ] || { echo "sanitized builds have guards of their own: skipped"; exit 77; }

for file in "$REMAT" "$REMAT_SHARED"; do
  readelf -Wl "$file" >"$work/segments"
  readelf -Wd "$file" >"$work/dynamic"
  readelf -Ws --dyn-syms "$file" >"$work/symbols"
  grep -q GNU_RELRO "$work/segments" || complain "$file: no RELRO"
  grep -q "BIND_NOW\|Flags:.*NOW" "$work/dynamic" || complain "$file: symbols are bound late"
  grep "GNU_STACK" "$work/segments" | grep -q "RWE" && complain "$file: the stack can be executed"
  grep -q "__stack_chk_fail" "$work/symbols" || complain "$file: no stack protector"
done
readelf -h "$REMAT" | grep -q "Type:.*DYN" || complain "the program has a fixed address"
# Debug builds are not optimized, which checked calls need.
build=$(dirname "$REMAT")
if ! grep -q '^CMAKE_BUILD_TYPE:[A-Z]*=Debug' "$build/CMakeCache.txt"; then
  for file in "$REMAT" "$REMAT_SHARED"; do
    readelf -Ws --dyn-syms "$file" | grep -q "__[a-z]*printf_chk" || complain "$file: no checked calls"
  done
fi
finish
