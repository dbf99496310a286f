#!/bin/sh
# Folders in Hugging Face's layout: what the commands do with them, adapters, merged models, and folders that are broken.
. tests/cli/support/expect.sh
export OMP_NUM_THREADS=1 # the models are tiny
errs() { for text; do err "$text"; done; }
from=tests/reference/pretrained
train="--set dataset.type=random --set dataset.samples=8 --set model.batch_size=2 --length 12 --set optimizer.learning_rate=0.05"
data="$train --set dataset.validation_split=0.5"
train="$train --strategy none" # planning takes longer than these steps

# All families, without their weights.
for family in gpt2 llama mistral qwen2 qwen3; do
  mkdir "$work/$family"
  cp "$from/$family/config.json" "$work/$family"
  expect 0 summary "$work/$family" --length 12
  out "lm_head"
  cp "$from/$family"/*.safetensors* "$work/$family"
done
mv "$work/llama/model.safetensors" "$work/weights"
expect 0 summary "$work/llama" --length 7
out "1:7:16"
expect 0 fit "$work/llama/" --length 12 --lora rank=4,targets=q_proj+v_proj --strategy none
out "smallest budget"
expect 0 plan "$work/llama" --length 12 --strategy full
# shellcheck disable=SC2086
expect 3 train "$work/llama" $train
errs "neither model.safetensors nor model.safetensors.index.json" "--from-scratch"
mv "$work/weights" "$work/llama/model.safetensors"
expect 2 summary "$work/gpt2" --length 21
err "n_positions: 21 tokens are asked for, and it is 20"
expect 0 summary "$work/qwen3" --length 5000
errs "warning" "max_position_embeddings: 5000 tokens are asked for, and it is"
expect 0 summary "$work/qwen3" --length 8
! grep -q max_position "$work/err" || complain "a length that the model has is warned of"

# loss COMMAND...: the loss of an evaluation.
loss() {
  # shellcheck disable=SC2086
  expect 0 eval "$@" $data --json
  sed -n 's/.*"loss": \([0-9.]*\).*/\1/p' "$work/out"
}
near() { # a b allowed
  echo "$1 $2 $3" | awk '{ d = $1 - $2; exit !(d < $3 && d > -$3) }'
}

# An adapter is trained, saved, used, trained further and merged. The merged model says what the adapted one says.
for family in gpt2 llama; do
  target=self_attn.q_proj allowed=0.02
  [ $family = llama ] || allowed=0.00001
  [ $family = gpt2 ] && target='h.?.attn.c_attn'
  # shellcheck disable=SC2086
  expect 0 train "$work/$family" $train --lora "rank=3,alpha=9,targets=$target" --steps 6 --save "$work/$family.adapter/" -q
  grep -q '"r": 3' "$work/$family.adapter/adapter_config.json" || complain "the rank is not in adapter_config.json"
  grep -aq 'base_model.model.*lora_B.weight' "$work/$family.adapter/adapter_model.safetensors" || complain "there is no lora_B"
  plain=$(loss "$work/$family")
  adapted=$(loss "$work/$family" --adapter "$work/$family.adapter")
  near "$plain" "$adapted" 0.0001 && complain "$family: the adapter changes nothing: $plain, $adapted"
  expect 0 convert "$work/$family" --length 12 --adapter "$work/$family.adapter" --output "$work/$family.merged/"
  cmp "$work/$family/config.json" "$work/$family.merged/config.json" || complain "config.json is another"
  expect 0 convert "$work/$family" --length 12 --adapter "$work/$family.adapter" --output "$work/$family.file"
  errs "wrote $work/$family.file" "it is a file with weights; --output $work/$family.file/ writes a folder"
  expect 6 convert "$work/$family.merged" --length 12 --adapter "$work/$family.adapter" --output "$work/$family.merged/"
  err "it is also read"
  merged=$(loss "$work/$family.merged")
  near "$merged" "$adapted" $allowed || complain "$family: merged $merged, adapted $adapted"
done
# shellcheck disable=SC2086
expect 0 train "$work/gpt2" $train --adapter "$work/gpt2.adapter" --steps 2 --save "$work/merged.too/" --merge -q
[ -f "$work/merged.too/model.safetensors" ] || complain "--merge wrote no model"

# A folder that cannot be written is noticed before the first step.
# shellcheck disable=SC2086
expect 6 train "$work/gpt2" $train --save "$work/no/folder/" --log "$work/first.jsonl"
err "no/folder/: cannot be written"
[ ! -e "$work/first.jsonl" ] || complain "it is noticed late"

# A whole model comes back as it came, and only some layers are trained.
# shellcheck disable=SC2086
expect 0 train "$work/mistral" $train --train 'layers.1.*' --steps 2 --save "$work/some/" -q
# shellcheck disable=SC2086
expect 0 train "$work/some" $train --steps 1 -q
grep -aq '"F16"' "$work/some/model.safetensors" || complain "the weights have another type"

# What is asked for and is not there.
expect 2 summary "$work/llama" --lora targets=q_prj
err "lora: targets: no layer matches 'q_prj'"
expect 2 summary "$work/llama" --lora rank=0
expect 2 summary "$work/llama" --lora q_proj
err "'q_proj' is not key=value"
expect 2 summary "$work/llama" --train 'layers.7.*'
err "train: no layer matches 'layers.7.*'"
expect 2 summary "$work/llama" --lora rank=4,alpha=8,rank=5
err "lora: rank is given twice"
tied=$(grep -l '"tie_word_embeddings": true' "$work"/*/config.json | head -n 1)
expect 2 summary "${tied%/config.json}" --train lm_head
errs "train: it names 'lm_head' and not" "they are tied"
! grep -q 'config.json' "$work/err" || complain "a line of config.json is blamed: $(cat "$work/err")"
# shellcheck disable=SC2086
expect 2 eval "$work/llama" $data --lora rank=2
err "is an adapter without weights"

# Frozen weights in fewer bits: matrices of 64 columns and more are packed.
mkdir "$work/wide"
file wide/config.json <<'END'
{"model_type": "llama", "vocab_size": 100, "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2,
 "num_attention_heads": 4, "max_position_embeddings": 64, "torch_dtype": "bfloat16"}
END
before=999999999
for type in fp32 keep int8 int4; do
  expect 0 plan "$work/wide" --lora rank=2 --frozen $type --strategy none --json
  bytes=$(sed -n 's/.*"total_bytes": \([0-9]*\).*/\1/p' "$work/out")
  [ "$bytes" -lt "$before" ] || complain "--frozen $type: $bytes bytes in all, before $before"
  before=$bytes
done
expect 2 fit "$work/wide" --frozen int8
err "frozen: it would do nothing, because no layer is frozen"
expect 0 plan "$work/wide" --train 'layers.1.*' --frozen int8 --strategy none
expect 2 fit "$work/wide" --lora rank=2 --frozen int3
err "fp32, fp16, bf16, int8, int4 or, for a folder, keep"

# Broken folders name the file and the key.
broken() { # file, sed's script: a copy of the folder `llama` with this file changed
  rm -rf "$work/broken"
  cp -r "$work/${3:-llama}" "$work/broken"
  sed -i "$2" "$work/broken/$1"
}
broken config.json 's/"hidden_size": 16/"hidden_size": 24/'
# shellcheck disable=SC2086
expect 3 eval "$work/broken" $data
err "broken/model.safetensors: model.embed_tokens.weight: it is 48 x 16 in the file and 48 x 24 in the model"
err "by hidden_size of config.json it has 24, not 16"
broken config.json 's/"num_hidden_layers": 2/"num_hidden_layers": 1/'
# shellcheck disable=SC2086
expect 3 eval "$work/broken" $data
errs "model.layers.1" "the model of config.json does not"
broken config.json 's/"num_hidden_layers": 2/"num_hidden_layers": 3/'
# shellcheck disable=SC2086
expect 3 eval "$work/broken" $data
errs "model.layers.2" "and the weights do not"
broken config.json 's/"model_type": "llama"/"model_type": "bert"/'
expect 3 summary "$work/broken"
errs "broken/config.json" "model_type" "'bert' is not supported"
broken config.json 's/"vocab_size": 48,//'
expect 3 summary "$work/broken"
errs "vocab_size" "it is missing"
broken config.json 's/"llama3"/"longrope"/'
expect 3 summary "$work/broken"
errs "rope_scaling.rope_type" "'longrope' is not supported"
broken config.json 's/"num_key_value_heads": 2/"num_key_value_heads": 3/'
expect 3 summary "$work/broken"
errs "num_key_value_heads" "does not divide"
broken model.safetensors 's/"BF16"/"I16" /'
# shellcheck disable=SC2086
expect 3 eval "$work/broken" $data
errs "broken/model.safetensors" "I16"
broken model.safetensors.index.json '' qwen2
rm "$work/broken/model-00002-of-00002.safetensors"
# shellcheck disable=SC2086
expect 3 eval "$work/broken" $data
errs "model.safetensors.index.json" "'model-00002-of-00002.safetensors', and this file is not there"
broken model.safetensors.index.json 's/model.norm.weight/model.norm.gain/' qwen2
# shellcheck disable=SC2086
expect 3 eval "$work/broken" $data
errs "model.norm.gain" "this file does not have it"
broken config.json ''
sed 's/model.norm.weight/model.nurm.weight/' "$work/llama/model.safetensors" >"$work/broken/model.safetensors"
# shellcheck disable=SC2086
expect 3 eval "$work/broken" $data
errs "model.norm.weight" "and the weights do not"
# A tokenizer that is missing is noticed before the weights, and nothing is printed of a text.
rm -f "$work/broken"/tokenizer*.json "$work/broken/model.safetensors"
expect 6 generate "$work/broken" --prompt hello
err "tokenizer.json"
[ ! -s "$work/out" ] || complain "it printed $(cat "$work/out")"
mkdir "$work/empty"
expect 6 summary "$work/empty"
err "config.json"
sed -i 's/"r": 3/"r": 2/' "$work/llama.adapter/adapter_config.json"
# shellcheck disable=SC2086
expect 3 eval "$work/llama" $data --adapter "$work/llama.adapter"
errs "lora_A" "3 x 16 in the file and 2 x 16 in the model"
finish
