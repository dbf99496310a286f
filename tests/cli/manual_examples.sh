#!/bin/sh
# The examples of the manual: every line of docs/ that begins with "$ " is run, and what it prints is what stands below it,
# up to the next command or the end of the block. `cat FILE` shows a file that the commands below it use.
. tests/cli/support/expect.sh

mkdir "$work/bin" "$work/run"
ln -s "$(realpath "$REMAT")" "$work/bin/remat"
ln -s "$PWD/examples" "$work/run/examples"
PATH=$work/bin:$PATH
export PATH COLUMNS=80 LC_ALL=C.UTF-8
for page in docs/get-started.md docs/concepts.md docs/choosing-a-budget.md docs/troubleshooting.md; do
  rm -rf "$work/blocks"
  mkdir "$work/blocks"
  # One pair of files a command: what to run, and what it prints.
  awk -v folder="$work/blocks" '
    /^    \$ / { n++; name = sprintf("%s/%03d", folder, n); print substr($0, 7) > (name ".command"); printf "" > (name ".output"); on = 1; next }
    /^    / && on { print substr($0, 5) > (name ".output"); next }
    { on = 0 }' "$page"
  for command in "$work"/blocks/*.command; do
    wanted=${command%.command}.output
    text=$(cat "$command")
    case $text in
      "cat "*) cp "$wanted" "$work/run/${text#cat }"; continue ;; # a file that the next commands use
    esac
    (cd "$work/run" && sh -c "$text") >"$work/got" 2>"$work/said" || grep -q '^remat: ' "$wanted" || complain "$page: '$text' fails: $(head -c 300 "$work/said")"
    sed '/./,$!d' "$work/got" | diff "$wanted" - >"$work/diff" || complain "$page: '$text' prints something else: $(cat "$work/diff")"
  done
done
finish
