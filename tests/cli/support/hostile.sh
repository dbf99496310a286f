# shellcheck shell=sh disable=SC2034,SC2154 # names for and of the sourcing script
# Texts that must not reach a terminal as they are. Sourced after expect.sh.
# ESC and BEL, DEL, C1 (NEL and CSI), a right-to-left override and an isolate; in JSON also a newline.
bad=$(printf 'x\033]0;t\007\177\302\205\302\233\342\200\256\342\201\246y')
forged="z\\nremat: warning: forged"
json_bad='x\u001b]0;t\u0007\u007f\u0085\u009b\u202e\u2066y'$forged

# clean WHAT FILE: the file has nothing of that in it.
clean() {
  if LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]' "$2"; then
    complain "$1 prints control characters: $(LC_ALL=C tr -c '\n -~' '?' <"$2" | head -c 400)"
  fi
  ! grep -q '^remat: warning: forged' "$2" || complain "$1 prints a forged line"
}

# run ARGUMENT...: whatever the command thinks of it, both of its outputs are clean.
run() {
  "$REMAT" "$@" >"$work/out" 2>"$work/err" </dev/null || true
  clean "remat $* (stdout)" "$work/out"
  clean "remat $* (stderr)" "$work/err"
}

# good ARGUMENT...: the same for a command that must succeed.
good() {
  run "$@"
  expect 0 "$@"
}
