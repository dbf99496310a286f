#!/bin/sh
# Language models from JSON lines: from scratch, adapters, packing, what is cut, perplexity, texts, and data that is broken.
. tests/cli/support/expect.sh
export OMP_NUM_THREADS=1 # the models are tiny
model=$work/model
mkdir "$model"
file model/config.json <<'END'
{"model_type": "llama", "vocab_size": 280, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 1,
 "num_attention_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true}
END
file model/tokenizer_config.json <<'END'
{"eos_token": "<|endoftext|>", "chat_template": "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"}
END
yes "ape bee cat dog elk fox gnu hen ibis jay ape bee cat" | head -n 4 >"$work/text"
expect 0 tokenizer train "$work/text" --vocab 280 --output "$model/tokenizer.json"
file learned.jsonl <<'END'
{"text": "ape bee cat dog elk"}
{"prompt": "jay ape", "completion": " bee"}
{"prompt": "fox", "completion": " gnu"}
{"text": "ape bee cat dog elk fox gnu hen ibis jay"}

{"messages": [{"role": "user", "content": "ibis"}, {"role": "assistant", "content": "jay"}]}
{"text": "hen ibis jay ape bee cat"}
END
train="--length 24 --batch 1 --set optimizer.learning_rate=0.01"

# A folder without weights is an error, unless it is meant.
# shellcheck disable=SC2086
expect 3 train "$model" $train --data "$work/learned.jsonl"
err "neither model.safetensors nor model.safetensors.index.json"
# A rate at which the loss settles, so that rounding does not decide what is learned.
# shellcheck disable=SC2086
expect 0 train "$model" $train --set optimizer.learning_rate=0.005 --from-scratch --data "$work/learned.jsonl" --pack \
  --steps 250 --save "$work/base/" -q
for name in config.json tokenizer.json tokenizer_config.json; do
  cmp -s "$model/$name" "$work/base/$name" || complain "$name is not in the folder that was saved"
done
# shellcheck disable=SC2086
expect 2 train "$model" $train --from-scratch --weights "$work/base" --data "$work/learned.jsonl"

# Some rows are for validation. A training that stops goes on with the same bits.
part="$train --data $work/learned.jsonl --pack --length 12 --lora rank=2 -q"
# shellcheck disable=SC2086
expect 0 train "$work/base" $part --set dataset.validation_split=0.4 --set dataset.validation_every=1 --steps 2 --json
out '"best_validation_loss": 0.'
# shellcheck disable=SC2086
expect 0 train "$work/base" $part --set model.accumulate=2 --steps 4 --save "$work/whole.safetensors"
# shellcheck disable=SC2086
expect 0 train "$work/base" $part --set model.accumulate=2 --steps 2 --save "$work/half.safetensors"
# shellcheck disable=SC2086
expect 0 train "$work/base" $part --set model.accumulate=2 --steps 4 --resume "$work/half.safetensors" \
  --save "$work/rest.safetensors"
cmp -s "$work/whole.safetensors" "$work/rest.safetensors" || complain "a resumed training has other bits"
# shellcheck disable=SC2086
expect 2 train "$work/base" $train
err "name one file of JSON lines"

# Frozen weights that are not copied, in a budget that does not hold them: the same bits.
part="$train --lora rank=2 --threads 1"
# shellcheck disable=SC2086
expect 0 fit "$work/base" $part --frozen keep --json
least=$(sed -n 's/.*"min_budget_bytes": \([0-9]*\),.*/\1/p' "$work/out" | head -n 1)
all=$(sed -n 's/.*"keep_all_bytes": \([0-9]*\).*/\1/p' "$work/out" | head -n 1)
# shellcheck disable=SC2086
expect 0 fit "$work/base" $part --frozen keep --budget "$least" --json
[ "$(sed -n 's/.*"keep_all_bytes": \([0-9]*\).*/\1/p' "$work/out" | head -n 1)" = "$all" ] ||
  complain "fit: what keeping everything takes depends on the budget"
part="$part --data $work/learned.jsonl --steps 3"
# shellcheck disable=SC2086
expect 0 train "$work/base" $part --save "$work/copied.safetensors" -q
# shellcheck disable=SC2086
expect 0 train "$work/base" $part --frozen keep --budget "$least" --memory-limit hard --save "$work/mapped.safetensors" --json
err "they are dropped after each use"
out "\"allocated_bytes\": $least"
cmp -s "$work/copied.safetensors" "$work/mapped.safetensors" || complain "mapped weights give other bits"
# Checksums of mapped weights are compared: a value of the first tensor is another.
cp -r "$work/base" "$work/damaged"
at=$(($(od -An -N8 -tu8 "$work/damaged/model.safetensors") + 108))
printf '\377\001' | dd of="$work/damaged/model.safetensors" bs=1 seek=$at conv=notrunc 2>/dev/null
expect 3 generate "$work/damaged" --frozen keep --prompt a --count 1
err "embed_tokens.weight: the file is damaged"
expect 0 generate "$work/base" --frozen keep --prompt a --count 1
err "mapped from the folder"

# Folders are models for every command.
# shellcheck disable=SC2086
expect 0 profile "$work/base" $train --lora rank=2 --data "$work/learned.jsonl" --repeats 1 -o "$work/costs.json"
# shellcheck disable=SC2086
expect 0 bench "$work/base" --length 24 --batch 1 --lora rank=2 --data "$work/learned.jsonl" --steps 1
expect 0 report "$work/base" --length 24 --lora rank=2 --no-curve -o "$work/page.html"
[ -s "$work/page.html" ] || complain "report: there is no page of a folder"

# Plans for several lengths: losses as with one, the same bits after a resume, and what was predicted is allocated.
part="$train --data $work/learned.jsonl --lora rank=2 --strategy none -q"
losses() { sed -n 's/.*"loss": \([0-9.e+-]*\),.*/\1/p' "$1"; }
for classes in 1 4; do
  # shellcheck disable=SC2086
  expect 0 train "$work/base" $part --length-classes $classes --steps 6 --log "$work/log.$classes" --json \
    --save "$work/whole.$classes.safetensors"
  losses "$work/log.$classes" >"$work/losses.$classes"
done
[ "$(wc -l <"$work/losses.4")" = 6 ] || complain "there are not six losses"
paste "$work/losses.1" "$work/losses.4" | awk '{ d = $1 - $2; if (d > 1e-5 || d < -1e-5) exit 1 }' ||
  complain "other losses with classes: $(paste "$work/losses.1" "$work/losses.4")"
[ "$(sed -n 's/.*"allocated_bytes": \([0-9]*\).*/\1/p' "$work/out")" = \
  "$(sed -n 's/.*"total_bytes": \([0-9]*\), "keep.*/\1/p' "$work/out")" ] || complain "more is allocated than was predicted"
# shellcheck disable=SC2086
expect 0 train "$work/base" $part --length-classes 4 --steps 3 --save "$work/half.safetensors"
# shellcheck disable=SC2086
expect 0 train "$work/base" $part --length-classes 4 --steps 6 --resume "$work/half.safetensors" --save "$work/rest.safetensors"
cmp -s "$work/whole.4.safetensors" "$work/rest.safetensors" || complain "a resumed training with classes has other bits"
# shellcheck disable=SC2086
expect 2 train "$work/base" $part --length-classes 30 --steps 1
err "more of them than tokens"
# shellcheck disable=SC2086
expect 0 fit "$work/base" --length 24 --lora rank=2 --length-classes 2 --strategy none

# The loss of a file does not depend on how samples share rows and batches. Perplexity is its exponential.
figure() { sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p" "$work/out"; }
near() { echo "$1 $2 $3" | awk '{ d = $1 - $2; exit !(d < $3 && d > -$3) }'; }
expect 0 eval "$work/base" --length 24 --batch 1 --data "$work/learned.jsonl" --pack --json
packed=$(figure loss)
for batch in 1 4; do
  expect 0 eval "$work/base" --length 24 --batch $batch --data "$work/learned.jsonl" --json
  near "$(figure loss)" "$packed" 0.00001 || complain "batch $batch: the loss is $(figure loss), packed $packed"
  near "$(figure perplexity)" "$(echo "$packed" | awk '{ print exp($1) }')" 0.001 || complain "the perplexity is another"
done
near "$packed" 0 1 || complain "nothing was learned: $packed"

# What is cut is said, and what has nothing to learn.
expect 0 eval "$work/base" --length 6 --batch 1 --data "$work/learned.jsonl"
err "samples are longer than 7 tokens; the rest of each is not read"
printf '%s\n' '{"prompt": "ape bee cat dog elk fox gnu hen", "completion": "ibis"}' '{"text": "ape bee cat"}' \
  >"$work/long.jsonl"
expect 0 eval "$work/base" --length 4 --batch 1 --data "$work/long.jsonl"
err "1 of 2 samples have nothing to learn in their first 5 tokens"

# An adapter learns something else, in a budget.
echo '{"prompt": "ape bee", "completion": " ibis"}' >"$work/task.jsonl"
# shellcheck disable=SC2086
expect 0 train "$work/base" $train --data "$work/task.jsonl" --lora rank=4 --frozen int8 --budget 1300KiB --steps 60 \
  --save "$work/adapter/" -q

# Texts. The most likely ones are those that were learned; a cache, threads and stops change nothing before their end.
expect 0 generate "$work/base" --prompt "ape bee" --temperature 0 --count 9
out "ape bee cat dog elk"
err "cache of 64 tokens"
expect 0 generate "$work/base" --adapter "$work/adapter" --prompt "ape bee" --temperature 0 --count 4 -q
out "ape bee ibis"
[ ! -s "$work/err" ] || complain "--quiet says something"
expect 0 generate "$work/base" --prompt "ape bee" --temperature 0 --stop " dog" --count 9
grep -qx "ape bee cat" "$work/out" || complain "--stop: $(cat "$work/out")"
expect 0 generate "$work/base" --frozen int8 --prompt "ape bee" --temperature 0 --count 9
out "ape bee cat dog"
expect 0 generate "$work/base" --chat --prompt "ibis" --temperature 0 --count 4
expect 0 generate "$work/base" --prompt "ape bee" --seed 3 --top-k 2 --top-p 0.9 --count 4
cp "$work/out" "$work/once"
expect 0 generate "$work/base" --prompt "ape bee" --seed 3 --top-k 2 --top-p 0.9 --count 4 --cache 20 --threads 2
cmp -s "$work/once" "$work/out" || complain "the same seed gives another text"
expect 2 generate "$work/base" --prompt "ape bee cat dog elk fox" --cache 3
err "and the cache has room for 3"
expect 2 generate examples/models/gpt.ini --weights nothing --stop x
err "are for a folder"
expect 2 generate "$work/base" --top-p 2

# Data that is broken names the file and the line, or the tokenizer.
bad() { # line, words of the message
  printf '%s\n' '{"text": "ape"}' "$1" >"$work/bad.jsonl"
  expect 3 eval "$work/base" --length 8 --data "$work/bad.jsonl"
  err "bad.jsonl:2"
}
bad '{"text": 3}'
bad '{"prompt": "x"}'
bad '{"text": "x"'
bad 'ape bee'
mkdir "$work/other"
cp "$work/base"/* "$work/other"
expect 0 tokenizer train src/data/data.c --vocab 600 --output "$work/other/tokenizer.json"
expect 3 eval "$work/other" --length 8 --data "$work/learned.jsonl"
err "it is the tokenizer of another model"
rm "$work/other/tokenizer.json"
expect 6 eval "$work/other" --length 8 --data "$work/learned.jsonl"
err "other/tokenizer.json"
finish
