#!/bin/sh
# Completion in bash and zsh offers what --help lists.
. tests/cli/support/expect.sh

scripts/completions.sh "$REMAT" "$work/completions" || complain "the completions cannot be made"
commands=$("$REMAT" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')

# complete WORD...: what bash offers for the last word.
complete_words() {
  bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _remat; printf "%s\n" "${COMPREPLY[@]}"' bash "$work/completions/remat.bash" "$@"
}

if command -v bash >/dev/null 2>&1; then
  complete_words remat "" | grep -v '^--' | sort >"$work/offered"
  echo "$commands" | sort >"$work/listed"
  diff "$work/listed" "$work/offered" || complain "bash offers other commands"
  [ "$(complete_words remat swe)" = sweep ] || complain "bash does not complete swe"
  for command in $commands; do
    "$REMAT" "$command" --help | grep -o '^ *\(-., \)\?--[a-z-]*' | grep -o -- '--[a-z-]*' | sort -u >"$work/listed"
    complete_words remat "$command" -- | sed 's/=$//' | sort -u >"$work/offered"
    diff "$work/listed" "$work/offered" >"$work/diff" || complain "bash and $command --help differ: $(cat "$work/diff")"
    grep -q "^  $command)" "$work/completions/_remat" || complain "zsh does not know $command"
    sed -n "/^  $command)/,/;;/p" "$work/completions/_remat" | grep -o "'--[a-z-]*" | sed "s/'//" | sort -u >"$work/offered"
    diff "$work/listed" "$work/offered" >"$work/diff" || complain "zsh and $command --help differ: $(cat "$work/diff")"
  done
  complete_words remat plan --strategy "" | grep -qx optimal || complain "bash does not offer the strategies"
  complete_words remat plan --strategy = opt | grep -qx optimal || complain "bash does not complete --strategy=opt"
  [ "$(complete_words remat train --kernels avx | tr '\n' ' ')" = "avx512bf16 avx512 avx2 " ] || complain "bash does not offer the kernels"
  [ "$(complete_words remat train --frozen int | tr '\n' ' ')" = "int8 int4 " ] || complain "bash does not offer the types of frozen weights"
  complete_words remat fit --shard g | grep -qx gradients || complain "bash does not offer what ranks share"
  complete_words remat check --profile examples/tr | grep -qx examples/transformer.json || complain "bash does not complete files"
else
  part_skipped "bash is not installed"
fi
if command -v zsh >/dev/null 2>&1; then
  zsh -n "$work/completions/_remat" || complain "zsh cannot read its completion"
else
  part_skipped "zsh is not installed"
fi
finish
