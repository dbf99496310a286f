#!/bin/sh
# The demo with a program that only notes its arguments: what a run saves and tells the user to go on with stays there.
. tests/cli/support/expect.sh
cp -r examples "$work/"
cat >"$work/remat" <<'END'
#!/bin/sh
echo "$*" >>arguments
quiet=no save=
for word; do
  case $last in --save | --log | -o) : >"$word"; save="$save $word" ;; esac
  case $word in --quiet) quiet=yes ;; esac
  last=$word
done
case $1 in generate) echo nothing ;; esac
[ $quiet = yes ] || for name in $save; do echo "$name" >>named; done
END
chmod +x "$work/remat"
demo=$PWD/scripts/demo.sh
(cd "$work" && "$demo" ./remat) >"$work/out" 2>&1 || complain "the demo fails: $(tail -n 3 "$work/out")"
[ "$(grep -c '^train' "$work/arguments")" -ge 4 ] || complain "the demo trains less often"
while read -r name; do
  [ -f "$work/$name" ] || complain "$name was named and is gone"
  git check-ignore -q "$name" 2>/dev/null || [ ! -d .git ] || complain "$name is not ignored"
done <"$work/named"
out "Open demo.html"
finish
