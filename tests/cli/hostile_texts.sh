#!/bin/sh
# As hostile_names, for graphs, ONNX files, folders of models, tokenizers and samples.
set -eu
. tests/cli/support/expect.sh
. tests/cli/support/hostile.sh
export OMP_NUM_THREADS=1

# ---- graphs ----
file graph.json <<END
{"format": "remat-graph", "version": 1, "name": "$json_bad", "cost_unit": "$json_bad", "tensors": [
  {"index": 0, "name": "$json_bad", "bytes": 400, "given": true}, {"index": 1, "name": "${json_bad}1", "bytes": 800},
  {"index": 2, "name": "${json_bad}2", "bytes": 800}, {"index": 3, "name": "${json_bad}3", "bytes": 80}],
 "actions": [
  {"index": 0, "name": "$json_bad", "reads": [0], "writes": [1], "cost": 5},
  {"index": 1, "name": "${json_bad}b", "reads": [1], "writes": [2], "cost": 5, "workspace_bytes": 64},
  {"index": 2, "name": "${json_bad}c", "reads": [1, 2], "writes": [3], "cost": 5, "once": true}], "results": [3]}
END
good plan "$work/graph.json"
good plan "$work/graph.json" -o "$work/plan.json"
good plan "$work/graph.json" --json
run plan "$work/graph.json" --budget 1
good sweep "$work/graph.json"
good fit "$work/graph.json"
good check "$work/plan.json" --profile "$work/graph.json"
good report "$work/graph.json" -o "$work/page.html"
clean "the page of a graph" "$work/page.html"
for field in name bytes reads cost format; do
  sed "s/\"$field\": *\"*[][a-z0-9-]*\"*/\"$field\": \"$(printf %s "$json_bad" | sed 's/\\/\\\\/g')\"/" "$work/graph.json" >"$work/odd.json"
  run plan "$work/odd.json"
  run check "$work/plan.json" --profile "$work/odd.json"
done
if has_python && "$REMAT" doctor | grep -q 'ONNX.*read'; then
  python3 tests/cli/support/onnx_file.py hostile "$work/odd.onnx" || complain "the ONNX file was not written"
  for command in plan fit sweep; do run $command "$work/odd.onnx"; done
fi

# ---- folders ----
escaped=$(printf %s "$json_bad" | sed 's/\\/\\\\/g')
mkdir "$work/model" "$work/$bad"
cp tests/reference/pretrained/llama/config.json tests/reference/pretrained/llama/model.safetensors "$work/model"
run summary "$work/$bad"
for key in model_type hidden_size torch_dtype hidden_act rope_type vocab_size; do
  sed "s/\"$key\": *\"*[a-z0-9]*\"*/\"$key\": \"$escaped\"/" tests/reference/pretrained/llama/config.json >"$work/model/config.json"
  run summary "$work/model" --length 8
done
cp tests/reference/pretrained/llama/config.json "$work/model"
for option in "--lora=$bad" "--lora=targets=$bad" "--train=$bad" "--adapter=$work/$bad" "--frozen=$bad"; do
  run summary "$work/model" --length 8 "$option"
done
cp -r tests/reference/pretrained/llama/adapter "$work/adapter"
chmod -R u+w "$work/adapter"
for key in peft_type r target_modules; do
  sed "s/\"$key\": *\"*[][a-zA-Z0-9\", _]*/\"$key\": [\"$escaped\"] , \"x\": \"/" tests/reference/pretrained/llama/adapter/adapter_config.json \
    >"$work/adapter/adapter_config.json"
  run summary "$work/model" --length 8 --adapter "$work/adapter"
done
printf '{"weight_map": {"%s": "%s"}}' "$json_bad" "$json_bad" >"$work/model/model.safetensors.index.json"
rm "$work/model/model.safetensors"
run eval "$work/model" --length 8 --set dataset.type=random --set dataset.samples=4

# ---- tokenizers, templates and samples ----
family=tests/data/tokenizers
cp $family/qwen2.json "$work/model/tokenizer.json"
for key in type pattern content Regex; do
  sed "s/\"$key\": *\"[A-Za-z]*\"/\"$key\": \"$escaped\"/" $family/qwen2.json >"$work/odd.json"
  run tokenizer encode "$work/odd.json" --text "$bad"
done
run tokenizer encode "$work/model" --text "$bad"
run tokenizer encode "$work/model" --text "$bad" --json
printf '1 %s 2' "$bad" >"$work/ids"
run tokenizer decode "$work/model" "$work/ids"
run tokenizer "$bad"
run tokenizer train "$work/$bad" -o "$work/x.json"
run tokenizer train README.md --pattern "[$bad" -o "$work/x.json"
run tokenizer train README.md --special "$bad" --vocab 300 -o "$work/$bad.json"
"$REMAT" tokenizer encode "$work/model" --text "$bad" >"$work/ids"
expect 0 tokenizer decode "$work/model" "$work/ids" --json
clean "decode --json" "$work/out"
for template in "{{ $escaped }}" "{% $escaped %}" "{{ raise_exception('$escaped') }}" "{{ messages[0]['$escaped'].x.y }}"; do
  printf '{"eos_token": "<|im_end|>", "chat_template": "%s"}' "$(printf %s "$template" | sed 's/\\\\/\\/g')" >"$work/model/tokenizer_config.json"
  printf '{"messages": [{"role": "%s", "content": "%s"}]}\n' "$json_bad" "$json_bad" >"$work/chats.jsonl"
  run tokenizer samples "$work/model" "$work/chats.jsonl" --length 8
done
printf '{"%s": 1}\n' "$json_bad" >"$work/chats.jsonl"
run tokenizer samples "$work/model" "$work/chats.jsonl"
printf '{"messages": [{"role": "%s"}]}\n' "$json_bad" >"$work/chats.jsonl"
run tokenizer samples "$work/model" "$work/chats.jsonl"

# On a terminal the decoded text has nothing on which it would act.
if command -v script >/dev/null 2>&1; then
  script -qec "'$REMAT' tokenizer decode '$work/model' '$work/ids'" /dev/null >"$work/tty" </dev/null || complain "decode on a terminal fails"
  tr -d '\r' <"$work/tty" >"$work/out"
  clean "decode on a terminal" "$work/out"
else
  part_skipped "script is not installed"
fi
finish
