#!/bin/sh
# The version stands in three places (RELEASING.md): the build, the public header, and the top of the changelog.
. tests/cli/support/expect.sh
build=$(sed -n 's/^project(remat VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
header=$(sed -n 's/^#define REMAT_VERSION_[A-Z]* \([0-9]*\)$/\1/p' include/remat/remat.h | paste -sd .)
heading=$(grep -m 1 '^## ' CHANGELOG.md)
[ "$build" = "$header" ] || complain "CMakeLists.txt says $build, remat.h says $header"
case $heading in
  "## $build (unreleased)" | "## $build ("[0-9]*-[0-9]*-[0-9]*")") ;;
  *) complain "CMakeLists.txt says $build, CHANGELOG.md begins with '$heading'" ;;
esac
[ "$("$REMAT" --version)" = "remat $build" ] || complain "the program says $("$REMAT" --version)"
# Earlier versions have their dates.
[ "$(grep -c '^## .*(unreleased)$' CHANGELOG.md)" -le 1 ] || complain "CHANGELOG.md has two versions that are not released"
finish
