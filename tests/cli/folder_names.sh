#!/bin/sh
# What people see of a folder in Hugging Face's layout: the names of their own files, and no line of a text that they never wrote.
. tests/cli/support/expect.sh
export OMP_NUM_THREADS=1 # the models are tiny
from=tests/reference/pretrained
random="--length 8 --set dataset.type=random --set dataset.samples=4"

# tensors FILE: the names in a safetensors file.
tensors() { LC_ALL=C grep -ao '"[A-Za-z0-9_.]*" *: *{ *"dtype"' "$1" | cut -d '"' -f 2 | sort; }

# A model from scratch has the names that the same model has elsewhere.
for family in gpt2 llama mistral qwen3; do
  mkdir "$work/$family"
  cp "$from/$family/config.json" "$work/$family"
  # shellcheck disable=SC2086
  expect 0 train "$work/$family" --from-scratch $random --steps 0 --strategy none --save "$work/$family.new/" -q
  tensors "$from/$family/model.safetensors" >"$work/wanted"
  tensors "$work/$family.new/model.safetensors" >"$work/found"
  [ -s "$work/found" ] || complain "$family: no names were found"
  cmp -s "$work/wanted" "$work/found" || complain "$family: other names: $(diff "$work/wanted" "$work/found" | head -n 4)"
done
expect 0 summary "$from/llama" --length 8 --order
out "model.norm.weight"
! grep -q 'gain\|shift' "$work/out" || complain "the order has names of ours"
cp -r "$from/llama" "$work/f"
chmod -R u+w "$work/f"
sed -i 's/"num_hidden_layers": 2/"num_hidden_layers": 1/' "$work/f/config.json"
# shellcheck disable=SC2086
expect 3 eval "$work/f" $random --set dataset.validation_split=0.5
err "model.layers.1.input_layernorm.weight: the weights have this tensor, and the model of config.json does not"

# no_line CODE TEXT ARGUMENT...: the message has TEXT, and cites no line.
no_line() {
  wanted_code=$1 text=$2
  shift 2
  expect "$wanted_code" "$@"
  err "$text"
  ! grep -q 'config.json:[0-9]' "$work/err" || complain "a line of a text that nobody has: $(cat "$work/err")"
}
qwen=$from/qwen2
no_line 3 "config.json: layer 'lm_head': shared_from" summary "$qwen" --set model.embed_tokens.in_dim=9
no_line 3 "config.json: layer 'model.layers.0.self_attn.q_rotary'" summary "$qwen" --set 'model.layers.{i}.self_attn.q_proj.unit=9'
no_line 2 "train: it names 'lm_head' and not 'model.embed_tokens'" summary "$qwen" --train lm_head
no_line 2 "--set foo.bar=1: the model of config.json has no section 'foo'" summary "$qwen" --set foo.bar=1

# Layers that get no adapter, and values that are none.
expect 2 summary "$qwen" --lora targets=input_layernorm
err "lora: targets: no fully_connected layer matches 'input_layernorm', which is of type rms_normalization"
expect 2 summary "$qwen" --lora rank=0
err "lora: rank: '0' is not a whole number"
expect 0 fit "$qwen" --length 8 --lora rank=2 --strategy none
out " trained), batch 1"

# Text: a chat template that is missing is noticed before the weights are; a tokenizer of another model is named.
cp -r "$from/llama" "$work/chat"
chmod -R u+w "$work/chat"
cp tests/data/tokenizers/gpt2.json "$work/chat/tokenizer.json"
expect 3 generate "$work/chat" --prompt hello -q
err "chat: tokenizer.json: its token"
err "the model has tokens from 0 to 47; it is the tokenizer of another model"
rm "$work/chat/model.safetensors"
expect 3 generate "$work/chat" --chat --prompt hello
err "has no chat template"
silent out
finish
