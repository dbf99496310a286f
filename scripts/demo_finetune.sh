#!/bin/sh
# Usage: scripts/demo_finetune.sh PATH/TO/remat [FOLDER]
# A small Llama is trained from scratch on the sources of this project, with a tokenizer that is made from them. Then an adapter of
# low rank learns a second task, within a budget and on int4 weights: to say what a file of the project is for. Everything is written
# to FOLDER (demo-finetune). Steps, the width and the folders of the sources can be set: STEPS, TASK_STEPS, WIDTH, SOURCES.
set -eu
remat=$1
to=${2:-demo-finetune}
steps=${STEPS:-1200} task_steps=${TASK_STEPS:-150} width=${WIDTH:-128}
say() { printf '\n== %s\n' "$*"; }
run() { echo "\$ remat $*"; "$remat" "$@"; }

# Lines as the inside of JSON texts.
escape() { sed 's/\\/\\\\/g; s/"/\\"/g; s/	/\\t/g'; }

mkdir -p "$to/model"
say "A tokenizer of 1024 tokens, from the project's own sources"
# shellcheck disable=SC2086 # several folders
find ${SOURCES:-src include} -name '*.[ch]' ! -name unicode_tables.c | sort >"$to/files"
echo "\$ remat tokenizer train FILES --vocab 1024 --output $to/model/tokenizer.json"
# shellcheck disable=SC2046 # names without blanks
"$remat" tokenizer train $(cat "$to/files") --vocab 1024 --output "$to/model/tokenizer.json"
echo '{"eos_token": "<|endoftext|>"}' >"$to/model/tokenizer_config.json"
cat >"$to/model/config.json" <<END
{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 1024, "hidden_size": $width,
 "intermediate_size": $((width * 3)), "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
 "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "tie_word_embeddings": true, "hidden_act": "silu",
 "torch_dtype": "float32"}
END

say "Two tasks: to write such sources, and to say what a file is for"
: >"$to/text.jsonl"
: >"$to/task.jsonl"
while read -r name; do
  # Samples of 8 lines: what is longer than a row is cut, and the program says how many that are.
  escape <"$name" | awk 'NF || n { text = text $0 "\\n"; if (++n == 8) { print "{\"text\": \"" text "\"}"; text = ""; n = 0 } }
    END { if (n) print "{\"text\": \"" text "\"}" }' >>"$to/text.jsonl"
  about=$(sed -n '1s,^/\* \([^.:]*\)[.:].*,\1.,p' "$name")
  [ -z "$about" ] || printf '{"prompt": "%s:", "completion": " %s"}\n' "$(basename "$name")" \
    "$(printf '%s\n' "$about" | escape)" >>"$to/task.jsonl"
done <"$to/files"
awk 'NR % 8 == 0' "$to/task.jsonl" >"$to/held.jsonl"
awk 'NR % 8 != 0' "$to/task.jsonl" >"$to/learned.jsonl"
wc -l "$to/text.jsonl" "$to/learned.jsonl" "$to/held.jsonl"

say "From scratch: samples share rows, and none sees another"
run train "$to/model" --from-scratch --data "$to/text.jsonl" --pack --length 128 --batch 8 --steps "$steps" \
  --set optimizer.learning_rate=0.004 --set optimizer.schedule=cosine --set optimizer.warmup_steps=20 --budget 40MiB --save "$to/base/"

say "What it knows about the second task"
run eval "$to/base" --data "$to/held.jsonl" --length 128 --batch 4

say "An adapter of rank 8 learns it on int4 weights, within 12 MiB in all; prompts are not learned"
run train "$to/base" --data "$to/learned.jsonl" --pack --length 128 --batch 4 --steps "$task_steps" --lora rank=8 \
  --frozen int4 --set optimizer.learning_rate=0.003 --budget 12MiB --memory-limit hard --save "$to/adapter/"
run eval "$to/base" --adapter "$to/adapter" --data "$to/held.jsonl" --length 128 --batch 4

say "And both write"
run generate "$to/base" --prompt 'static remat_status' --count 60 --temperature 0.5
run generate "$to/base" --adapter "$to/adapter" --prompt 'arena_place.c:' --count 24 --temperature 0

say "The folders $to/base and $to/adapter have Hugging Face's and PEFT's layout"
