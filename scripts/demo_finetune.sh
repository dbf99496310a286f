#!/bin/sh
# Usage: scripts/demo_finetune.sh PATH/TO/remat [FOLDER]
# A small Llama is trained from scratch on the sources of this project, with a tokenizer that is made from them. Then an adapter of
# low rank learns a second task, within a budget and on int4 weights: to say what a function returns. Both models are asked about
# functions that the adapter was not trained on, and their answers are counted. Everything is written to FOLDER (demo-finetune).
# Steps, the width, the folders of the sources and the number of questions can be set: STEPS, TASK_STEPS, WIDTH, SOURCES, QUESTIONS.
set -eu
remat=$1
to=${2:-demo-finetune}
steps=${STEPS:-1200} task_steps=${TASK_STEPS:-500} width=${WIDTH:-128} questions=${QUESTIONS:-40}
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

# ask NAME [OPTION...]: puts the questions to a model. $to/NAME gets a line "function: answer (right answer)" for each.
ask() {
  name=$1
  shift
  while IFS='	' read -r function type; do
    answer=$("$remat" generate "$to/base" "$@" --prompt "$function
/* It returns" --count 12 --temperature 0 --stop '. */' --quiet | sed '1d; s,^/\* It returns *,,' | tr '\n' ' ' | sed 's/ *$//')
    printf '%s: %s (%s)\n' "$function" "$answer" "$type"
  done <"$to/questions" >"$to/$name"
}
# right NAME: how many of the answers are.
right() { awk '{ i = match($0, /\): /); split(substr($0, i + 3), a, / \(/); if (a[1] ")" == a[2]) n++ } END { print n + 0 }' "$to/$1"; }

say "Two tasks: to write such sources, and to say what a function returns"
: >"$to/text.jsonl"
while read -r name; do
  # Samples of 8 lines: what is longer than a row is cut, and the program says how many that are.
  escape <"$name" | awk 'NF || n { text = text $0 "\\n"; if (++n == 8) { print "{\"text\": \"" text "\"}"; text = ""; n = 0 } }
    END { if (n) print "{\"text\": \"" text "\"}" }' >>"$to/text.jsonl"
done <"$to/files"
# Each function once, with its type behind a tab; every one whose number divides by `every` is a question, the others are learned.
xargs grep -hE '^static [a-z_0-9]+( [a-z_0-9]+)* \**[a-z_0-9]+\([^()"]*\)$' <"$to/files" | grep -v '^static inline' |
  awk '{ type = $0; sub(/\(.*/, "", type); name = type; sub(/.*[ *]/, "", name)
    type = substr(type, 8, length(type) - 7 - length(name)); sub(/ $/, "", type); if (!seen[name]++) print $0 "\t" type }' >"$to/functions"
every=$(($(wc -l <"$to/functions") / questions))
awk -v every="$every" -v most="$questions" 'NR % every == 0 && n++ < most' "$to/functions" >"$to/questions"
samples() { awk -F '\t' '{ printf "{\"prompt\": \"%s\\n/* It returns\", \"completion\": \" %s. */\"}\n", $1, $2 }'; }
awk -v every="$every" 'NR % every != 0' "$to/functions" | samples >"$to/learned.jsonl"
samples <"$to/questions" >"$to/held.jsonl"
wc -l "$to/text.jsonl" "$to/learned.jsonl" "$to/held.jsonl"
head -n 2 "$to/learned.jsonl"

say "From scratch: samples share rows, and none sees another"
run train "$to/model" --from-scratch --data "$to/text.jsonl" --pack --length 128 --batch 8 --steps "$steps" \
  --set optimizer.learning_rate=0.004 --set optimizer.schedule=cosine --set optimizer.warmup_steps=20 --budget 40MiB --save "$to/base/"

say "What it knows about the second task: $questions functions, none of which the adapter will be trained on"
run eval "$to/base" --data "$to/held.jsonl" --length 128 --batch 4
ask before

say "An adapter of rank 8 learns it on int4 weights, within 12 MiB in all; prompts are not learned"
run train "$to/base" --data "$to/learned.jsonl" --pack --length 128 --batch 4 --steps "$task_steps" --lora rank=8 \
  --frozen int4 --set optimizer.learning_rate=0.004 --set optimizer.schedule=cosine --set optimizer.warmup_steps=20 --budget 12MiB --memory-limit hard --save "$to/adapter/"
run eval "$to/base" --adapter "$to/adapter" --data "$to/held.jsonl" --length 128 --batch 4
ask after --adapter "$to/adapter"

say "Both write: the first makes up code, the second reads the type off a function that it was not trained on"
run generate "$to/base" --prompt 'static remat_status' --count 60 --temperature 0.5
run generate "$to/base" --adapter "$to/adapter" --prompt "$(head -n 1 "$to/questions" | cut -f 1)
/* It returns" --count 12 --temperature 0

say "Look here: function, answer of the adapted model, and the right answer in brackets"
head -n 8 "$to/after"
often=$(cut -f 2 "$to/questions" | sort | uniq -c | sort -rn | awk 'NR == 1 { print $1 }')
say "Right answers to $(wc -l <"$to/questions") questions: $(right before) before, $(right after) with the adapter; the most frequent type alone would be right $often times"
say "The folders $to/base and $to/adapter have Hugging Face's and PEFT's layout"
