#!/bin/sh
# Who may include whom (docs/architecture.md): reads every #include "FOLDER/..." and compares it with the table.
set -eu
. tests/cli/support/environment.sh

# Folder, then all folders it may use besides itself.
allowed() {
  case $1 in
    base) echo "" ;;
    graph | arena | store | backend) echo "base" ;;
    plan/chain) echo "graph base" ;;
    plan/graph) echo "plan/chain graph arena base" ;;
    tape) echo "plan/chain graph arena store base" ;;
    backend/cpu | backend/cuda) echo "backend base" ;;
    layers) echo "backend base" ;;
    model) echo "layers backend plan/graph plan/chain graph arena base" ;;
    data/tokenizer) echo "base" ;;
    data) echo "data/tokenizer model layers backend plan/graph plan/chain graph arena base" ;;
    comm) echo "backend base" ;;
    train) echo "comm data data/tokenizer model layers backend/cpu backend plan/graph plan/chain graph arena store base" ;;
    report) echo "train comm data data/tokenizer model layers backend/cpu backend plan/graph plan/chain graph arena store base" ;;
    compat) echo "train comm data data/tokenizer model layers backend/cpu backend plan/graph plan/chain graph arena store base" ;;
    *) echo "unknown" ;;
  esac
}

# included_by FILE...: what the files include in quotes.
included_by() { grep -ho '^#include "[^"]*"' "$@" | sed 's/.*"\(.*\)".*/\1/' | sort -u; }

failed=0
complain() {
  echo "$1" >&2
  failed=1
}

for folder in $(find src -mindepth 2 -name '*.[ch]' -exec dirname {} + | sort -u); do
  folder=${folder#src/}
  may=$(allowed "$folder")
  [ "$may" != unknown ] || { complain "src/$folder is not in the table of tests/layout/includes.sh"; continue; }
  for used in $(included_by "src/$folder"/*.[ch]); do
    target=${used%/*}
    [ -f "src/$used" ] || complain "src/$folder includes \"$used\", which is not a file under src/"
    case " $folder $may " in
      *" $target "*) ;;
      *) complain "src/$folder may not include \"$used\": it may use only: $may" ;;
    esac
  done
done

# The command line uses the public headers, the importers and its own files.
for used in $(included_by cli/*.[ch]); do
  [ -f "cli/$used" ] || [ -n "$(find importers -name "$used")" ] || complain "cli/ includes \"$used\"; it may use only <remat/...> and its own headers"
done

# An importer uses the public headers, its own files, and what is generated for it.
for folder in importers/*; do
  for used in $(included_by "$folder"/*.[ch]); do
    [ -f "$folder/$used" ] || [ "${used%.pb-c.h}" != "$used" ] ||
      complain "$folder includes \"$used\"; it may use only <remat/...> and its own headers"
  done
done

# The public headers include one another and the C library only.
if grep -n '^#include "' include/remat/*.h; then complain "a public header includes a private one"; fi

# File names are unique in the tree.
twice=$(find src cli include importers bench tests -name '*.[ch]' -exec basename {} \; | sort | uniq -d)
[ -z "$twice" ] || complain "file names that stand twice in the tree: $twice"

[ "$failed" = 0 ]
