#!/bin/sh
# Broken and hostile folders, and lines of data that are no samples: each is expect with the file, and the key or the line.
. tests/cli/support/expect.sh
export OMP_NUM_THREADS=1
from=tests/reference/pretrained
random="--length 8 --set dataset.type=random --set dataset.samples=4 --set dataset.validation_split=0.5"

# copy [FAMILY]: a fresh folder.
copy() {
  rm -rf "$work/f"
  cp -r "$from/${1:-llama}" "$work/f"
  chmod -R u+w "$work/f"
}
# says TEXT...: on stderr.
says() { for text; do err "$text"; done; }

# ---- config.json ----

# config SCRIPT TEXT...: changed by sed.
config() {
  copy
  sed -i "$1" "$work/f/config.json"
  shift
  expect 3 summary "$work/f" --length 8
  says "f/config.json" "$@"
}
config 's/"num_hidden_layers": 2/"num_hidden_layers": 1000000000/' "config.json:5: num_hidden_layers: 100000 layers are the most"
config 's/"num_hidden_layers": 2/"num_hidden_layers": -1/' "num_hidden_layers" "a whole number from 1"
config 's/"num_hidden_layers": 2/"num_hidden_layers": "two"/' "num_hidden_layers" "a whole number from 1"
config 's/"hidden_size": 16/"hidden_size": 1e400/' "hidden_size"
config 's/"hidden_size": 16/"hidden_size": 1000000000000000000/' "hidden_size"
config 's/"hidden_size": 16/"hidden_size": 16, "hidden_size": 32/' "hidden_size: it is there twice"
config 's/"hidden_size": 16/"hidden_size": null/' "hidden_size: it is missing"
config 's/"rope_theta": 500.0/"rope_theta": NaN/' "'N' where a value should stand"
config 's/"factor": 4.0,//' "rope_scaling.factor"
config 's/"llama"/7/' "model_type: it must be a text"
config 's/"silu"/"mish"/' "hidden_act: 'mish' is not supported"
config 's/"torch_dtype"/"quantization_config": {"quant_method": "gptq"}, &/' "quantization_config: its weights are quantized already"
copy
: >"$work/f/config.json"
expect 3 summary "$work/f"
says "config.json:1: the text ends"
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "{\"a\":" }' >"$work/f/config.json"
expect 3 summary "$work/f"
says "nested deeper than 64 levels"
rm "$work/f/config.json"
mkdir "$work/f/config.json"
expect 6 summary "$work/f"
says "config.json: cannot be opened: it is a folder"

# ---- weights that are others ----

disagrees() { # FAMILY SCRIPT TEXT...: config.json does not fit the weights
  copy "$1"
  sed -i "$2" "$work/f/config.json"
  shift 2
  # shellcheck disable=SC2086
  expect 3 eval "$work/f" $random
  says "$@"
}
disagrees llama 's/"vocab_size": 48/"vocab_size": 49/' "model.embed_tokens.weight" "by vocab_size of config.json it has 49, not 48"
disagrees llama 's/"intermediate_size": 24/"intermediate_size": 50/' "gate_proj" "by intermediate_size"
disagrees llama 's/"vocab_size"/"attention_bias": true, &/' "q_proj.bias" "are model_type, attention_bias and mlp_bias there right?"
disagrees qwen3 's/"qwen3"/"llama"/' "q_norm.weight" "is model_type there right?"

# weights COMMAND TEXT...: model.safetensors is changed by the command, in whose $1 it is.
weights() {
  copy
  sh -c "$1" - "$work/f/model.safetensors" || complain "$1"
  shift
  # shellcheck disable=SC2086
  expect 3 eval "$work/f" $random
  says "f/model.safetensors" "$@"
}
# shellcheck disable=SC2016 # the command's own $1
{
  weights ': >"$1"' "0 bytes are too few"
  weights 'truncate -s -10 "$1"' "the file is damaged or not complete"
  weights 'truncate -s +10 "$1"' "the file is damaged or not complete"
  weights 'truncate -s 100 "$1"' "a header of"
  weights 'printf "\377\377\377\377\377\377\377\177" | dd of="$1" conv=notrunc 2>/dev/null' "a header of 9223372036854775807 bytes"
  weights 'sed -i "s/\"BF16\"/\"F8\"  /" "$1"' "dtype" "the type 'F8' is unknown"
  weights 'sed -i "s/\"dtype\": \"BF16\"/\"dtype\": 10000 /" "$1"' "dtype: 10000 is not allowed"
  weights 'sed -i "s/\"data_offsets\": \[0, /\"data_offsets\": [9, /" "$1"' "data_offsets" "its type and shape need"
  weights 'sed -i "s/\"shape\": \[48, 16\]/\"shape\": [-8, 16]/" "$1"' "shape" "whole numbers from 0"
  weights 'sed -i "s/\"shape\": \[48, 16\]/\"shape\": [16, 48]/" "$1"' "it is 16 x 48 in the file and 48 x 16 in the model"
}
copy
rm "$work/f/model.safetensors"
# shellcheck disable=SC2086
expect 3 eval "$work/f" $random
says "the folder has no weights" "--from-scratch"
: >"$work/f/pytorch_model.bin"
# shellcheck disable=SC2086
expect 3 eval "$work/f" $random
says "the folder has no weights" "pytorch_model.bin"

# ---- shards ----

index() { # SCRIPT TEXT...
  copy qwen2
  sed -i "$1" "$work/f/model.safetensors.index.json"
  shift
  # shellcheck disable=SC2086
  expect 3 eval "$work/f" $random
  says "f/model.safetensors.index.json" "$@"
}
embedding='"model.embed_tokens.weight": "model-00001-of-00002.safetensors"'
for path in ../../etc/passwd /etc/passwd ''; do
  index "s|$embedding|\"model.embed_tokens.weight\": \"$path\"|" "model.embed_tokens.weight: a shard is a file of this folder"
done
index "s|$embedding|\"model.embed_tokens.weight\": 7|" "model.embed_tokens.weight: 7 is not allowed"
index "s|$embedding|\"model.embed_tokens.weight\": \"model-00002-of-00002.safetensors\"|" "this file does not have it"
index 's/"weight_map"/"weights"/' "weight_map: it is missing"
index 's/model-0000.-of-00002.safetensors/model.safetensors.index.json/' "this is a text, not a weights file"
copy qwen2
truncate -s 3000 "$work/f/model-00002-of-00002.safetensors"
# shellcheck disable=SC2086
expect 3 eval "$work/f" $random
says "f/model-00002-of-00002.safetensors"

# ---- adapters ----

adapter() { # SCRIPT TEXT...
  copy
  sed -i "$1" "$work/f/adapter/adapter_config.json"
  shift
  # shellcheck disable=SC2086
  expect 3 eval "$work/f" $random --adapter "$work/f/adapter"
  says "f/adapter/adapter_config.json" "$@"
}
adapter 's/"LORA"/"PREFIX_TUNING"/' "peft_type"
adapter 's/"q_proj"/"q_prj"/' "target_modules: no layer matches 'q_prj'"
adapter 's/"q_proj"/"(q|k)_proj"/' "target_modules: it must be names"
adapter 's/"r": [0-9]*/"r": 0/' "r: it must be at least 1"
copy
rm "$work/f/adapter/adapter_model.safetensors"
# shellcheck disable=SC2086
expect 3 eval "$work/f" $random --adapter "$work/f/adapter"
says "f/adapter: the folder has no weights: there is an adapter_config.json, and no adapter_model.safetensors"

# ---- lines of data ----

copy
sed -i 's/"vocab_size": 48/"vocab_size": 1000/' "$work/f/config.json"
cp tests/data/tokenizers/llama3.json "$work/f/tokenizer.json"
samples="train $work/f --from-scratch --strategy none --length 12 --steps 1 -q --data $work/data.jsonl"
line() { # LINE TEXT...: it is the second line
  printf '{"text": "good"}\n%s\n' "$1" >"$work/data.jsonl"
  shift
  # shellcheck disable=SC2086
  expect 3 $samples
  says "data.jsonl:2" "$@"
}
line 'hello' "'h' where a value should stand"
line '[1]' "an array is not allowed"
line '{}' "this is no sample"
line '{"text": 3}' "text: 3 is not allowed"
line '{"prompt": "a"}' "has a 'prompt' and no 'completion'"
line '{"text": "a", "prompt": "b", "completion": "c"}' "more than one of"
line '{"text": "a", "text": "b"}' "text: there twice"
line '{"text": "a"}{"text": "b"}' "the end of the text"
line '{"text": "\ud800"}' "surrogate"
line '{"messages": []}' "messages: there are none"
line '{"messages": [{"role": "user", "content": "a"}]}' "messages need a chat template"
line '{"text": "a' "the text ends"
line "$(awk 'BEGIN { printf "{\"a\":"; for (i = 0; i < 10000; i++) printf "[" }')" "nested deeper than 64 levels"
printf '{"text": "\377"}\n' >"$work/data.jsonl"
# shellcheck disable=SC2086
expect 3 $samples
says "data.jsonl:1: a string is not valid UTF-8"
# A mark before UTF-8 is no part of the first line, and an end token that is none is said.
printf '\357\273\277{"text": "good"}\r\n' >"$work/data.jsonl"
echo '{"eos_token": "<nope>"}' >"$work/f/tokenizer_config.json"
# shellcheck disable=SC2086
expect 0 $samples
says "f/tokenizer.json" "eos_token" "'<nope>', is none of its tokens"
rm "$work/f/tokenizer_config.json"
sed -i 's/"vocab_size": 1000/"vocab_size": 100/' "$work/f/config.json"
# shellcheck disable=SC2086
expect 3 $samples
says "the tokenizer of another model" "from 0 to 99"
finish
