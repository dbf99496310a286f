#!/bin/sh
# Builds the manual as a small web site: README and docs/ by cmark-gfm, and a page for every public header. Ends with an
# error where a link leads nowhere. Usage: docs.sh FOLDER
set -eu
site=$1
here=$(cd "$(dirname "$0")/.." && pwd)
command -v cmark-gfm >/dev/null || { echo "docs.sh: cmark-gfm is missing; its Debian package has that name" >&2; exit 1; }
rm -rf "$site"
mkdir -p "$site"
cp "$here/web/site/site.css" "$site/"
find "$here/docs" -name '*.svg' -exec cp {} "$site/" \;

# The pages in reading order; any others of docs/ follow.
order="get-started concepts choosing-a-budget pytorch c-api python ranks performance troubleshooting memory-model optimal graph-planning tape formats benchmarks architecture adding-a-layer"
pages=""
for page in $order; do [ ! -f "$here/docs/$page.md" ] || pages="$pages $page"; done
for file in "$here"/docs/*.md; do
  page=$(basename "$file" .md)
  case " $pages " in *" $page "*) ;; *) pages="$pages $page" ;; esac
done
headers=$(sed -n 's/^#include <remat\/\([a-z_]*\)\.h>.*/\1/p' "$here/include/remat/remat.h" | tr '\n' ' ')
for file in "$here"/include/remat/*.h; do
  header=$(basename "$file" .h)
  case " remat $headers " in *" $header "*) ;; *) headers="$headers $header" ;; esac
done

title_of() { sed -n 's/^# //p' "$1" | head -1; }

navigation() { # the page that is open
  link() { printf '<li><a href="%s.html"%s>%s</a></li>\n' "$1" "$([ "$1" != "$open" ] || echo ' aria-current="page"')" "$2"; }
  open=$1
  printf '<nav aria-label="Pages"><p>Remat</p><ul>\n'
  link index Start
  for page in $pages; do link "$page" "$(title_of "$here/docs/$page.md")"; done
  link contributing Contributing
  printf '</ul><p>C headers</p><ul>\n'
  for header in remat $headers; do link "api-$header" "$header.h"; done
  printf '</ul></nav>\n'
}

# Wraps what stands on standard input: frame NAME TITLE
frame() {
  printf '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
  printf '<title>%s – Remat</title>\n<link rel="stylesheet" href="site.css">\n</head>\n<body>\n<div class="frame">\n' "$2"
  navigation "$1"
  printf '<main>\n'
  cat
  printf '</main>\n</div>\n</body>\n</html>\n'
}

# Headings get names to link to, the way GitHub makes them; links to files of the project become links to pages.
finish_html() {
  awk '{
    if (match($0, /^<h[1-4]>.*<\/h[1-4]>$/)) {
      level = substr($0, 3, 1); text = substr($0, 5, length($0) - 9); slug = tolower(text)
      gsub(/<[^>]*>/, "", slug); gsub(/&[a-z]+;/, "", slug); gsub(/[^a-z0-9 _-]/, "", slug); gsub(/ /, "-", slug)
      number = seen[slug]++; if (number) slug = slug "-" number
      $0 = "<h" level " id=\"" slug "\">" text "</h" level ">"
    }
    print
  }' | sed -e 's|href="\(\.\./\)*README\.md|href="index.html|g' -e 's|href="\(\.\./\)*CONTRIBUTING\.md|href="contributing.html|g' \
    -e 's|href="\(\.\./\)*docs/\([a-z-]*\)\.md|href="\2.html|g' -e 's|href="\([a-z-]*\)\.md|href="\1.html|g' \
    -e 's|href="\(\.\./\)*include/remat/\([a-z_]*\)\.h|href="api-\2.html|g' -e 's|href="\(\.\./\)*include/remat"|href="api-remat.html"|g' \
    -e 's|src="\(\.\./\)*docs/|src="|g' -e 's|href="\(\.\./\)*\(examples\|src\|scripts\|cli\|bench\|tests\)/|href="\2/|g' \
    -e 's|href="\(\.\./\)*\(LICENSE\|CHANGELOG.md\)"|href="\2"|g'
}

markdown() { cmark-gfm -e table -e autolink --to html "$1" | finish_html; }

markdown "$here/README.md" | frame index "Train neural networks in the memory you have" >"$site/index.html"
markdown "$here/CONTRIBUTING.md" | frame contributing Contributing >"$site/contributing.html"
for page in $pages; do markdown "$here/docs/$page.md" | frame "$page" "$(title_of "$here/docs/$page.md")" >"$site/$page.html"; done
for header in remat $headers; do
  awk -v name="$header.h" -f "$here/scripts/header_page.awk" "$here/include/remat/$header.h" |
    sed 's|&lt;remat/\([a-z_]*\)\.h&gt;|\&lt;<a href="api-\1.html">remat/\1.h</a>\&gt;|g' | frame "api-$header" "$header.h" >"$site/api-$header.html"
done

# Every link leads to a page that is there, and every part of a page that is linked to exists.
broken=0
for file in "$site"/*.html; do
  links=$(grep -o '\(href\|src\)="[^"]*"' "$file" | sed 's/^[a-z]*="//; s/"$//' | sort -u)
  for link in $links; do
    case $link in http://* | https://* | mailto:*) continue ;; esac
    target=${link%%#*} part=""
    case $link in *'#'*) part=${link#*#} ;; esac
    [ -n "$target" ] || target=$(basename "$file")
    # Other files of the project, such as examples, are shown as they are.
    if [ ! -e "$site/$target" ] && [ -e "$here/$target" ]; then
      mkdir -p "$site/$(dirname "$target")"
      cp -r "$here/$target" "$site/$target"
    fi
    if [ ! -e "$site/$target" ]; then
      echo "docs.sh: $(basename "$file") links to $link, which is not there" >&2
      broken=$((broken + 1))
    elif [ -n "$part" ] && ! grep -q "id=\"$part\"" "$site/$target"; then
      echo "docs.sh: $(basename "$file") links to $link, but $target has no such part" >&2
      broken=$((broken + 1))
    fi
  done
done
[ "$broken" = 0 ] || exit 1
echo "$(find "$site" -maxdepth 1 -name '*.html' | wc -l) pages in $site"
