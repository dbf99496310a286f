#!/bin/sh
# `remat arena`: the same rows with offsets; words on stderr.
. tests/cli/support/expect.sh

file lives.csv <<'END'
id,lower,upper,size
conv1,0,4,100
"relu, in place",2,6,50
conv2,5,9,100
END
file expected.csv <<'END'
id,lower,upper,size,offset
conv1,0,4,100,0
"relu, in place",2,6,50,100
conv2,5,9,100,0
END
expect 0 arena "$work/lives.csv"
diff "$work/expected.csv" "$work/out" || complain "the rows differ"
err "3 tensors in 150 bytes (150 B), proven: no placement needs less"
expect_stdin 0 "$work/lives.csv" arena -
cmp "$work/expected.csv" "$work/out" || complain "standard input gives other rows"
expect 0 arena "$work/expected.csv" # what comes out goes in again
cmp "$work/expected.csv" "$work/out" || complain "rows with offsets give other rows"
err "proven"

# Alignment: offsets and the height are multiples of it.
expect 0 arena "$work/lives.csv" --alignment 64
out '"relu, in place",2,6,50,128'
err "in 192 bytes"

# A capacity that can be met, one that cannot, and none at all.
expect 0 arena "$work/lives.csv" --capacity 150
expect 0 arena "$work/lives.csv" -c 1KiB --effort 0
expect 4 arena "$work/lives.csv" --capacity 149
err "no placement fits into 149 bytes"
cmp "$work/expected.csv" "$work/out" || complain "the best placement is not printed where it misses the capacity"
expect 4 arena "$work/lives.csv" --capacity 0 --json
out '"feasible": false'

# JSON.
expect 0 arena "$work/lives.csv" --json --capacity 200
out '"format": "remat-arena", "version": 1, "feasible": true, "alignment": 1, "capacity_bytes": 200'
out '"arena_bytes": 150, "lower_bound_bytes": 150, "optimal": true'
out '{"id": "relu, in place", "lower": 2, "upper": 6, "size": 50, "offset": 100}'

# Columns in any order; what is unknown is passed on; nothing at all is fine.
file wide.csv <<'END'
size,layer,upper,id,lower
8,"a ""b""",3,0,1
END
expect 0 arena "$work/wide.csv"
out 'size,layer,upper,id,lower,offset'
out '8,"a ""b""",3,0,1,0'
err "wide.csv:1: the column 'layer' is unknown; it is passed on as it is"
echo id,lower,upper,size >"$work/none.csv"
expect 0 arena "$work/none.csv"
out "id,lower,upper,size,offset"
err "0 tensors in 0 bytes"
expect 0 arena "$work/none.csv" --capacity 0

# Bad files name the line and the column.
bad() { # what stands behind the header, then the message
  printf 'id,lower,upper,size\nok,0,1,2\n%s\n' "$1" >"$work/bad.csv"
  expect 3 arena "$work/bad.csv"
  err "$2"
  silent out
}
bad "a,5,5,1" "bad.csv:3: upper: 5 is not above lower, 5"
bad "a,6,5,1" "bad.csv:3: upper: 5 is not above lower, 6"
bad "a,0,5,-1" "bad.csv:3: size: '-1' is not allowed"
bad "a,0,5,9223372036854775807" "bad.csv:3: size: too large: all sizes must sum to less than 2^63"
bad "a,0,5" "bad.csv:3: 3 cells; the first line names 4 columns"
echo id,lower,size >"$work/bad.csv"
expect 3 arena "$work/bad.csv"
err "bad.csv:1: upper: the column is missing"
: >"$work/bad.csv"
expect_stdin 3 "$work/bad.csv" arena -
err "<stdin>:1: the file is empty"
expect 3 arena examples/transformer.json

# Wrong usage, no such file, a full disk.
expect 2 arena
err "FILE is missing"
expect 2 arena a.csv b.csv
expect 2 arena "$work/lives.csv" --alignment 0
expect 2 arena "$work/lives.csv" --alignment x
expect 2 arena "$work/lives.csv" --capacity 1M
expect 2 arena "$work/lives.csv" --effort -1
expect 6 arena "$work/nowhere.csv"
for option in "" --json; do
  [ "$("$REMAT" arena "$work/lives.csv" $option >/dev/full 2>"$work/err"; echo $?)" = 6 ] ||
    complain "a full disk is not noticed"
done

# The published instances, where they lie beside the project: every one within its capacity.
for instance in ../shared/data/minimalloc/*.csv; do
  [ -f "$instance" ] || { part_skipped "there is no ../shared/data/minimalloc"; continue; }
  expect 0 arena "$instance" --capacity 1048576
  cut -d, -f1-4 "$work/out" | cmp - "$instance" || complain "$instance comes out changed"
done

# Files of remat without live ranges, and a graph whose format is misspelt.
printf '{"format": "remat-profile", "version": 1, "layers": [{"index": 0, "type": "ffn", "activation_bytes": 4, "recompute_flops": 1}]}' >"$work/chain.json"
printf '{"format": "remat-grahp", "version": 1,\n "tensors": [], "actions": []}' >"$work/misspelt.json"
expect 0 plan "$work/chain.json" --budget 1MiB --output "$work/plan.json"
for file in "$work/chain.json" "$work/plan.json"; do
  expect 3 arena "$file"
  err "no live ranges; FILE is a CSV of lifetimes, a graph, or the plan of a graph"
done
for command in arena plan report; do
  expect 3 $command "$work/misspelt.json"
  err "misspelt.json:1: format: 'remat-grahp' was found; it must be 'remat-graph'"
done
finish
