#!/bin/sh
# `remat summary`: what a model consists of.
. tests/cli/support/expect.sh

expect 0 summary examples/models/mlp.ini
silent err
out "layer   type             output c:h:w  parameters    output  saved  workspace  block"
out "fc1     fully_connected       1:1:512     401,920    64 KiB      -          -  first"
out "loss    mse                     1:1:1           -         -      -          -"
out "9 layers, 1 block, batch 32"
out "567,434 parameters (2.16 MiB)"

# Another batch size; standard input; JSON.
expect 0 summary examples/models/mlp.ini --batch 64
out "fc1     fully_connected       1:1:512     401,920   128 KiB"
out "batch 64"
expect_stdin 0 examples/models/mlp.ini summary - --json
out '{"format": "remat-summary", "version": 1, "name": "perceptron", "batch": 32,'
out '{"name": "fc1", "type": "fully_connected", "output_shape": [1, 1, 512], "parameters": 401920, "output_bytes": 65536, "saved_bytes": 0, "workspace_bytes": 0, "block": "first"}'
out '"parameters": 567434'

# Every example can be read; composite layers stand as their parts.
for model in examples/models/*.ini; do
  expect 0 summary "$model"
  silent err
done
expect 0 summary examples/models/gpt_bench.ini
out "h5.attn.core"
out "projection_cross_entropy"
out "14,186,496 parameters"
[ "$(wc -l <examples/models/gpt24.ini)" -le 40 ] || complain "a 24-layer transformer takes more than 40 lines"

# The order of execution.
expect 0 summary examples/models/mlp.ini --order
out "fc1"

# Errors name the file and the line.
file typo.ini <<'END'
[in]
Type = input
input_shape = 4

[fc1]
Type = fully_connected
units = 4

[loss]
Type = mse
END
expect 3 summary "$work/typo.ini"
silent out
err "typo.ini:7: layer 'fc1': units: fully_connected has no such property; did you mean unit? It has unit"
file lost.ini <<'END'
[in : input]
input_shape = 4
[fc1 : fully_connected]
unit = 4
input_layers = inn
[loss : mse]
END
expect 3 summary "$work/lost.ini"
err "lost.ini:5: layer 'fc1': input_layers: there is no layer 'inn'; did you mean 'in'?"
expect 6 summary "$work/none.ini"
expect 2 summary
err "MODEL.ini is missing"
expect 2 summary examples/models/mlp.ini --batch 0
expect 2 summary examples/models/mlp.ini --batch 99999999999
err "batch_size"
finish
