#!/bin/sh
# The manual becomes a web site in which every link leads somewhere, and every public function has its place.
. tests/cli/support/expect.sh
command -v cmark-gfm >/dev/null 2>&1 || { echo "cmark-gfm is not installed: skipped"; exit 77; }

scripts/docs.sh "$work/site" >"$work/out" 2>&1 || complain "the site has faults: $(cat "$work/out")"
for file in docs/*.md; do
  [ -f "$work/site/$(basename "$file" .md).html" ] || complain "$file has no page"
done
for name in $(grep -ho '\bremat_[a-z0-9_]*(' include/remat/*.h | tr -d '(' | sort -u); do
  grep -q "id=\"$name\"" "$work"/site/api-*.html || complain "$name cannot be found in the reference"
done
# Links of the Markdown itself, as they are read on the web and in a checkout.
for file in *.md docs/*.md; do
  links=$(grep -o '](\([^)]*\))' "$file" | sed 's/^](//; s/)$//; s/#.*//')
  for link in $links; do
    case $link in http*) continue ;; esac
    [ -e "$(dirname "$file")/$link" ] || complain "$file links to $link, which is not there"
  done
done
# A link that leads nowhere is noticed.
mkdir "$work/copy"
cp -r ./*.md LICENSE docs include scripts web "$work/copy/"
echo '[nowhere](nowhere.md)' >>"$work/copy/docs/tape.md"
if "$work/copy/scripts/docs.sh" "$work/copy/site" >"$work/out" 2>&1; then complain "a broken link is not noticed"; fi
finish
