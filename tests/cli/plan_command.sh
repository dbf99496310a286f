#!/bin/sh
# `remat plan` as a person uses it.
. tests/cli/support/expect.sh
profile=examples/transformer.json

# The table, to the letter.
file expected.txt <<'END'
transformer-6, 6 layers, strategy every-nth:3

  layer  name     type       activation      output    forward cost   backward cost forwards  decision
      0  h0.attn  attention       1 KiB       512 B       2,000,000       4,000,000        2  recompute
      1  h0.ffn   ffn          2.50 KiB       512 B       3,000,000       6,000,000        1  keep
      2  h1.attn  attention       1 KiB       512 B       2,000,000       4,000,000        1  keep
      3  h1.ffn   ffn          2.50 KiB       512 B       3,000,000       6,000,000        2  recompute
      4  h2.attn  attention       1 KiB       512 B       2,000,000       4,000,000        1  keep
      5  h2.ffn   ffn          2.50 KiB       512 B       3,000,000       6,000,000        1  keep

peak      9,728 bytes (9.50 KiB) at step 7 of 17, backward 5, made of
             2.50 KiB  s1  saved state of layer 1 (h0.ffn)
             2.50 KiB  s5  saved state of layer 5 (h2.ffn)
                1 KiB  s2  saved state of layer 2 (h1.attn)
                1 KiB  s4  saved state of layer 4 (h2.attn)
                512 B  x0  the input
                512 B  x1  output of layer 0 (h0.attn)
                1 KiB  in 2 smaller tensors
                512 B  output and workspace of the step itself
cost      50,000,000 flop, 11.1 % more than keeping everything (45,000,000)
          at most 11.11 % above the cheapest: no legal schedule costs less than 45,000,000
saved     2.50 KiB of 12 KiB (20.8 %); 2 of 6 layers recomputed (33.3 %), 7 KiB kept
END
expect 0 plan $profile --strategy every-nth:3
diff "$work/expected.txt" "$work/out" || complain "the table differs"
silent err

# Keeping everything is optimal without a budget, and the word is printed only then.
expect 0 plan $profile
out "strategy none"
out "optimal: no legal schedule costs less"
expect 0 plan $profile -s full
! grep -q optimal "$work/out" || complain "'optimal' is printed for a plan that is not"

# A strategy that saves nothing says so, and why.
expect 0 plan $profile -s none
out "saves nothing: no layer is recomputed"
file bare.csv <<'END'
index,type,activation_bytes,recompute_flops
0,ffn,100,10
1,other,100,1
2,ffn,100,10
3,other,100,1
END
expect 0 plan "$work/bare.csv" -s attention-only
out "saves nothing: no layer is of type attention"
expect 0 plan "$work/bare.csv" -s every-nth:2
out "saves nothing: a block keeps its output"

# Standard input, JSON out, a file out: all the same plan.
expect_stdin 0 $profile plan - -s largest:2 --json
cp "$work/out" "$work/from-stdin.json"
expect 0 plan $profile -s largest:2 --json -o "$work/plan.json"
cmp "$work/from-stdin.json" "$work/plan.json" || complain "-o and --json differ"
cmp "$work/from-stdin.json" "$work/out" || complain "--json differs"
expect 0 plan $profile -s largest:2 --json --no-schedule
! grep -q '"schedule"' "$work/out" || complain "--no-schedule prints a schedule"

# A fixed strategy over the budget: infeasible, exit 4, with the least budget.
expect 4 plan $profile -s none --budget 12287 --json
out '"feasible": false'
out '"min_budget_bytes": 12288'
! grep -q schedule "$work/out" || complain "an infeasible plan has a schedule"
err "the least it can meet is 12288 bytes"
expect 0 plan $profile -s none --budget 12288
expect 4 plan $profile -s budget --budget 7167
err "7168"
expect 0 plan $profile -s budget --budget 7KiB --json
out '"budget_bytes": 7168'
expect 0 plan $profile -s budget --budget 3KiB --count kept --json
out '"kept_budget_bytes": 3072'
"$REMAT" check "$work/out" -p $profile >/dev/null || complain "a plan that counts what is kept fails its check"

# Unknown keys are warned about on stderr and change nothing on stdout.
file odd.json <<'END'
{"format": "remat-profile", "version": 1, "colour": "blue",
 "layers": [{"index": 4, "type": "other", "activation_bytes": 8, "recompute_flops": 2, "mood": [1, {"a": 2}]}]}
END
expect 0 plan "$work/odd.json" --json
err "odd.json:1: the key 'colour' is unknown and ignored"
err "odd.json:2: layer 0: the key 'mood' is unknown and ignored"
out '"layer4"'

# Long tables are cut in the middle, unless asked not to.
{ echo index,type,activation_bytes,recompute_flops; i=0; while [ $i -lt 100 ]; do echo "$i,other,10,1"; i=$((i + 1)); done; } >"$work/long.csv"
expect 0 plan "$work/long.csv"
out "60 more layers; --all-layers shows them"
expect 0 plan "$work/long.csv" --all-layers
out "layer50"
finish
