#!/bin/sh
# `remat bench`: times of layers and phases beside the machine's limits.
. tests/cli/support/expect.sh
expect 0 bench examples/models/mlp.ini --steps 2 -j 1
out "ms a step"
out "fc1"
out "GFLOP/s in multiply-adds on registers"
expect 0 bench examples/models/mlp.ini --steps 2 -j 1 --strategy full --json
out '"format": "remat-bench"'
out '"recompute_seconds"'
expect 2 bench examples/models/mlp.ini --steps 0
expect 2 bench
expect 6 bench nowhere.ini
expect 4 bench examples/models/mlp.ini --budget 1MiB
finish
