#!/bin/sh
# Writes the completions of bash and zsh from what the program says of itself: completions.sh PROGRAM FOLDER [EMULATOR]
set -eu
program=$1 folder=$2
shift 2
emulator=$* # what runs the program where it is for another processor
# shellcheck disable=SC2086 # a command and its options
remat() { $emulator "$program" "$@"; }
mkdir -p "$folder"
export ARGP_HELP_FMT=rmargin=250 LC_ALL=C.UTF-8
commands=$(remat --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | tr '\n' ' ')
commands=${commands% }
summary_of() { remat --help | sed -n "s/^  $1  *//p"; }

# The options of a command, one a line: LONG|SHORT|VALUE|TEXT, where SHORT and VALUE may be empty.
options_of() {
  remat "$1" --help | awk '/^ +-/ {
    text = $0; sub(/^ +/, "", text)
    at = match(text, /  +[^ -]/); names = at ? substr(text, 1, at - 1) : text; words = at ? substr(text, at) : ""
    sub(/^ +/, "", words); sub(/ +$/, "", names)
    short = ""; if (names ~ /^-[^-]/) { short = substr(names, 1, 2); sub(/^-., /, "", names) }
    value = ""; at = index(names, "="); if (at) { value = substr(names, at + 1); names = substr(names, 1, at - 1) }
    if (short == "-?") short = ""
    printf "%s|%s|%s|%s\n", names, short, value, words
  }'
}

# What an option's value can be: words to choose from, or "file". The strategies are those that the help lists.
choices_of() { # option, value
  case $command:$1 in
    *:--strategy) remat plan --help | sed -n '/^Strategies:/,/^$/s/^  \([a-z-]*\).*/\1/p' | tr '\n' ' ' | sed 's/ $//' ;;
    *:--method) echo "auto exhaustive intervals" ;;
    plan:--count) echo "peak kept" ;;
    *:--device) echo "cpu cuda" ;;
    *:--shard) echo "none optimizer gradients weights" ;;
    *:--reduce) echo "fixed fast" ;;
    *:--frozen) echo "keep fp32 bf16 int8 int4" ;;
    *:--kernels) echo "fast amx avx512bf16 avx512 avx2 portable reference" ;;
    *) case $2 in *FILE* | *DIR* | *PATH* | *FOLDER*) echo "file" ;; *) echo "" ;; esac ;;
  esac
}

bash_completion() {
  cat <<'END'
# Completion of remat for bash; made by scripts/completions.sh.
_remat() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} options=
  # bash splits --option=value at the equals sign.
  if [[ $word == "=" ]]; then word=; elif [[ $before == "=" ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
END
  printf '    COMPREPLY=($(compgen -W "%s --help --version" -- "$word"))\n    return\n  fi\n' "$commands"
  echo '  case $command:$before in'
  for command in $commands; do
    options_of "$command" | while IFS='|' read -r long short value _; do
      [ -n "$value" ] || continue
      choices=$(choices_of "$long" "$value")
      case $choices in
        file) act='COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null' ;;
        *) act="COMPREPLY=(\$(compgen -W \"$choices\" -- \"\$word\"))" ;;
      esac
      printf '    %s:%s%s) %s; return ;;\n' "$command" "$long" "${short:+ | $command:$short}" "$act"
    done
  done
  echo '  esac'
  echo '  case $command in'
  for command in $commands; do
    printf '    %s) options="%s" ;;\n' "$command" \
      "$(options_of "$command" | awk -F'|' '{ printf "%s%s", (NR > 1 ? " " : ""), $1 ($3 != "" ? "=" : "") }')"
  done
  cat <<'END'
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
  else
    COMPREPLY=($(compgen -f -- "$word"))
    compopt -o filenames 2>/dev/null
  fi
  return 0
}
complete -F _remat remat
END
}

# zsh reads brackets, colons and quotes in its descriptions: they are taken out or escaped.
zsh_text() { printf '%s' "$1" | sed "s/'/’/g; s/\\[/(/g; s/\\]/)/g; s/:/\\\\:/g"; }

zsh_completion() {
  echo '#compdef remat'
  echo '# Completion of remat for zsh; made by scripts/completions.sh.'
  echo '_remat() {'
  echo '  local -a commands'
  echo '  commands=('
  for command in $commands; do printf "    '%s:%s'\n" "$command" "$(zsh_text "$(summary_of "$command")")"; done
  echo '  )'
  echo '  if (( CURRENT == 2 )); then _describe -t commands command commands; return; fi'
  echo '  case $words[2] in'
  for command in $commands; do
    printf '  %s)\n    (( CURRENT-- )); shift words\n    _arguments -s' "$command"
    options_of "$command" | while IFS='|' read -r long short value text; do
      text=$(zsh_text "$text")
      action=""
      if [ -n "$value" ]; then
        choices=$(choices_of "$long" "$value")
        case $choices in
          file) action=":$(zsh_text "$value"):_files" ;;
          "") action=":$(zsh_text "$value"):" ;;
          *) action=":$(zsh_text "$value"):($choices)" ;;
        esac
      fi
      printf " \\\\\n      '%s[%s]%s'" "$long${value:+=}" "$text" "$action"
      [ -z "$short" ] || printf " \\\\\n      '%s[%s]%s'" "$short${value:++}" "$text" "$action"
    done
    printf " \\\\\n      '*:file:_files'\n    ;;\n"
  done
  echo '  esac'
  echo '}'
  echo '_remat "$@"'
}

bash_completion >"$folder/remat.bash"
zsh_completion >"$folder/_remat"
