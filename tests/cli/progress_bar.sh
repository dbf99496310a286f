#!/bin/sh
# What a terminal shows while a model trains: one line that is drawn over itself, as wide as the terminal allows, with
# validations on lines of their own. Everything else is judged without a terminal.
. tests/cli/support/expect.sh
export REMAT
command -v script >/dev/null 2>&1 || { echo "script (util-linux) is not installed"; exit 77; }
cat >"$work/model.ini" <<'END'
[Model]
batch_size = 4
epochs = 3
[Optimizer : sgd]
[Dataset : random]
samples = 64
validation_split = 0.25
[in]
type = input
input_shape = 1:1:6
[fc]
type = fully_connected
unit = 3
[loss]
type = cross_entropy
END
# shown ENVIRONMENT ARGUMENT...: runs remat in a terminal of its own; $work/out has what it showed, one drawing a line.
shown() {
  environment=$1
  shift
  code=0
  script -qec "env $environment \"\$REMAT\" $*" /dev/null </dev/null >"$work/screen" 2>&1 || code=$?
  [ "$code" = 0 ] || complain "remat $*: exit code $code in a terminal: $(head -c 600 "$work/screen")"
  tr '\r' '\n' <"$work/screen" >"$work/out"
}
longest() { sed 's/\x1b\[[0-9;]*[A-Za-z]//g' "$work/out" | grep -a 'step [0-9]*/36' | awk '{ if (length > n) n = length } END { print n + 0 }'; }

shown COLUMNS=120 train "$work/model.ini" --threads 1
out '] step 36/36  loss '
out '[########################################]'
out 'samples/s'
out '00:00 left'
out 'step 12  validation loss '
out 'accuracy'
[ "$(longest)" -le 120 ] || complain "the bar is $(longest) columns wide in a terminal of 120"
# Where the text alone fills the line there is no bar, and the text is cut.
shown COLUMNS=40 train "$work/model.ini" --threads 1
out 'step 36/36  loss '
! grep -aq '\[#' "$work/out" || complain "a bar in 40 columns"
[ "$(longest)" -le 40 ] || complain "$(longest) columns in a terminal of 40"
# Nonsense in COLUMNS: the terminal's own width, or 80.
shown COLUMNS=wide train "$work/model.ini" --threads 1
out 'step 36/36'
# --quiet shows none of it.
shown COLUMNS=120 train "$work/model.ini" --threads 1 --quiet
! grep -aq 'step 36/36' "$work/out" || complain "--quiet shows progress"
# The bar is standard error's; a redirected one gets plain lines.
shown COLUMNS=120 train "$work/model.ini" --threads 1 "2>$work/err"
! grep -aq 'step 36/36  loss' "$work/out" || complain "progress on standard output"
err 'step 36/36  loss '
! grep -aq "$(printf '\033')" "$work/err" || complain "escapes in a file"
finish
