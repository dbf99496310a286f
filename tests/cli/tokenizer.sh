#!/bin/sh
# `remat tokenizer`: training, encoding, decoding, and what is learned from samples.
. tests/cli/support/expect.sh
family=tests/data/tokenizers

# A tokenizer of its own: what is encoded decodes to the same bytes.
expect 0 tokenizer train README.md docs/concepts.md --vocab 400 -o "$work/t.json"
out "400 tokens in "
expect 0 tokenizer train README.md --vocab 300 --json -o "$work/small.json"
out '{"tokens": 300, "asked": 300}'
expect 0 tokenizer encode "$work/t.json" docs/concepts.md
cp "$work/out" "$work/ids"
[ "$(wc -w <"$work/ids")" -lt "$(($(wc -c <docs/concepts.md) * 2 / 3))" ] || complain "400 tokens do not make the text shorter"
expect 0 tokenizer decode "$work/t.json" "$work/ids"
cmp -s "$work/out" docs/concepts.md || complain "the text is not the same when it comes back"
printf 'a\0\302\205b\0' >"$work/zeros"
expect_stdin 0 "$work/zeros" tokenizer encode "$work/t.json"
cp "$work/out" "$work/ids"
expect 0 tokenizer decode "$work/t.json" "$work/ids"
cmp -s "$work/out" "$work/zeros" || complain "a text with zeros is not the same when it comes back"
expect 0 tokenizer decode "$work/t.json" "$work/ids" --json
out '{"text": "a\u0000\u0085b\u0000"}'
expect 0 tokenizer train README.md --special '<s> </s>' --pattern '\S+|\s+' -o "$work/own.json"
expect 0 tokenizer encode "$work/own.json" --text '</s><s>'
[ "$(cat "$work/out")" = "1 0" ] || complain "special tokens are $(cat "$work/out")"

# Special tokens around a text, lines, JSON, standard input, a folder.
expect 0 tokenizer encode "$family/llama2.json" --text ''
[ "$(cat "$work/out")" = 1 ] || complain "an empty text is $(cat "$work/out")"
expect 0 tokenizer encode "$family/llama2.json" --text '' --no-special
[ "$(cat "$work/out")" = "" ] || complain "an empty text without special tokens is $(cat "$work/out")"
expect 0 tokenizer encode "$family/gpt2.json" --text 'ab é' --json
out '"starts": [0, '
printf 'one\ntwo' >"$work/lines"
expect_stdin 0 "$work/lines" tokenizer encode "$family/gpt2.json" --lines
[ "$(wc -l <"$work/out")" = 2 ] || complain "two lines are $(cat "$work/out")"
cp "$work/out" "$work/ids"
expect_stdin 0 "$work/ids" tokenizer decode "$family/gpt2.json" --json
out '{"text": "onetwo"}'
mkdir "$work/model"
cp "$family/qwen2.json" "$work/model/tokenizer.json"
expect 0 tokenizer encode "$work/model" --text 'Hi<|im_end|>'
cp "$work/out" "$work/ids"
expect 0 tokenizer decode "$work/model" "$work/ids"
[ "$(cat "$work/out")" = 'Hi<|im_end|>' ] || complain "decoded: $(cat "$work/out")"
expect 0 tokenizer decode "$work/model" "$work/ids" --no-special
[ "$(cat "$work/out")" = 'Hi' ] || complain "decoded without special tokens: $(cat "$work/out")"

# Samples.
cat >"$work/model/tokenizer_config.json" <<'END'
{"eos_token": "<|im_end|>", "chat_template": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"}
END
file chats.jsonl <<'END'
{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}
{"prompt": "One and one is", "completion": " two."}
{"text": "A longer text, which is cut because a row has room for few tokens only."}
END
expect 0 tokenizer samples "$work/model" "$work/chats.jsonl"
out "samples    3"
out "rows       1 of 256 tokens"
silent err
expect 0 tokenizer samples "$work/model" "$work/chats.jsonl" --length 16 --no-pack --json
[ "$(wc -l <"$work/out")" = 3 ] || complain "three samples are not three rows"
err "2 of 3 samples are longer than 17 tokens and are cut"
echo '{"txt": "a"}' >>"$work/chats.jsonl"
expect 3 tokenizer samples "$work/model" "$work/chats.jsonl"
err "chats.jsonl:4: this is no sample"

# What is wrong is said.
expect 2 tokenizer
expect 2 tokenizer frobnicate
err "train, encode, decode or samples"
expect 2 tokenizer train README.md
err "--output FILE is missing"
expect 2 tokenizer train README.md --vocab 10 -o "$work/no.json"
err "10 tokens are not allowed"
expect 6 tokenizer encode "$work/none.json" --text a
expect 6 tokenizer train "$work/none.txt" -o "$work/no.json"
expect 3 tokenizer encode README.md --text a
echo '1 2 x' >"$work/ids"
expect 3 tokenizer decode "$family/gpt2.json" "$work/ids"
err "byte 5 is not the beginning of an id"
printf 'a\377' >"$work/bytes"
expect 3 tokenizer encode "$family/gpt2.json" "$work/bytes"
err "byte 2 of the text, 0xff, is not UTF-8"
[ ! -e "$work/no.json" ] || complain "a training that failed leaves a file"
finish
