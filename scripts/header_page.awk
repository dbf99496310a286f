# Turns a public header into HTML: every block of a comment and the declarations below it, in the order of the header,
# which is written to be read. Names that are declared can be linked to.

function escape(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text); return text }

# The same for words: `names` stand in backticks, and files of docs/ are pages.
function prose(text,    out) {
  text = escape(text); out = ""
  while (match(text, /`[^`]+`/)) {
    out = out substr(text, 1, RSTART - 1) "<code>" substr(text, RSTART + 1, RLENGTH - 2) "</code>"
    text = substr(text, RSTART + RLENGTH)
  }
  out = out text
  return link_pages(out)
}

function link_pages(text,    out, name) {
  out = ""
  while (match(text, /docs\/[a-z-]+\.md/)) {
    name = substr(text, RSTART + 5, RLENGTH - 8)
    out = out substr(text, 1, RSTART - 1) "<a href=\"" name ".html\">docs/" name ".md</a>"
    text = substr(text, RSTART + RLENGTH)
  }
  return out text
}

# The words of a comment; lines indented inside it are code.
function words(text,    lines, count, i, line, in_code, out, paragraph) {
  count = split(text, lines, "\n"); out = ""; in_code = 0; paragraph = ""
  for (i = 1; i <= count; i++) {
    line = lines[i]
    sub(/^\/\* ?/, "", line); sub(/ ?\*\/$/, "", line); sub(/^ \* ?/, "", line); sub(/^ \*$/, "", line)
    if (line ~ /^    /) {
      if (paragraph != "") { out = out "<p>" paragraph "</p>\n"; paragraph = "" }
      if (!in_code) { out = out "<pre><code>"; in_code = 1 }
      out = out escape(substr(line, 5)) "\n"
      continue
    }
    if (in_code && line == "") { out = out "\n"; continue }
    if (in_code) { sub(/\n+$/, "\n", out); out = out "</code></pre>\n"; in_code = 0 }
    if (line ~ /^---- .* ----$/) { gsub(/^---- | ----$/, "", line); out = out "<h2>" prose(line) "</h2>\n"; continue }
    if (line == "") { if (paragraph != "") out = out "<p>" paragraph "</p>\n"; paragraph = "" }
    else if (line ~ /^ *- / || line ~ /^  REMAT_[A-Z_]+ /) { if (paragraph != "") out = out "<p>" paragraph "</p>\n"; sub(/^ *- /, "", line); paragraph = "• " prose(line) }
    else paragraph = paragraph (paragraph == "" ? "" : " ") prose(line)
  }
  if (in_code) { sub(/\n+$/, "\n", out); out = out "</code></pre>\n" }
  if (paragraph != "") out = out "<p>" paragraph "</p>\n"
  return out
}

# Names that a block declares: functions, and the names of types.
function names_in(code,    rest, name, found) {
  found = ""; rest = code
  while (match(rest, /remat_[a-z0-9_]+\(/)) {
    name = substr(rest, RSTART, RLENGTH - 1)
    if (index(" " found " ", " " name " ") == 0 && !(name in taken)) found = found " " name
    rest = substr(rest, RSTART + RLENGTH)
  }
  rest = code
  while (match(rest, /(typedef (struct|enum) remat_[a-z0-9_]+|\(\*remat_[a-z0-9_]+\))/)) {
    name = substr(rest, RSTART, RLENGTH); gsub(/typedef (struct|enum) |\(\*|\)/, "", name)
    if (index(" " found " ", " " name " ") == 0 && !(name in taken)) found = found " " name
    rest = substr(rest, RSTART + RLENGTH)
  }
  return found
}

function flush_block(    list, count, i, names) {
  sub(/\n+$/, "", comment); sub(/\n+$/, "", code)
  if (!introduced && comment != "" && code == "") { intro = words(comment); introduced = 1 }
  else if (comment != "" || code != "") {
    names = names_in(code)
    count = split(names, list, " ")
    for (i = 1; i <= count; i++) { taken[list[i]] = 1; anchors = anchors "<a id=\"" list[i] "\"></a>"; index_list = index_list "<li><a href=\"#" list[i] "\"><code>" list[i] "</code></a></li>\n" }
    body = body anchors (code != "" ? "<pre><code>" escape(code) "</code></pre>\n" : "") words(comment) "\n"
    anchors = ""
  }
  comment = ""; code = ""
}

/^#ifndef REMAT_.*_H$/ || /^#define REMAT_.*_H$/ || /^#define REMAT_H$/ || /^#ifndef REMAT_H$/ { flush_block(); next }
/^#ifdef __cplusplus/ { skipping = 1 }
skipping { if (/^#endif/) skipping = 0; next }
/^#endif$/ || /^#ifndef __cplusplus/ { next }
# Inline functions are shown as what they are for a caller: declarations.
/^static inline / { sub(/^static inline /, ""); is_inline = 1 }
is_inline && /^\{/ { sub(/\n$/, ";\n", code); in_body = 1; next }
in_body { if (/^\}/) is_inline = in_body = 0; next }
/^#include/ && FILENAME !~ /\/remat\.h$/ { next }
/^$/ { if (in_comment) comment = comment "\n"; else flush_block(); next }
!in_comment && code == "" && /^\/\*/ { in_comment = 1 }
in_comment { comment = comment $0 "\n"; if (/\*\//) in_comment = 0; next }
/^\/\*/ && code != "" { flush_block(); comment = $0 "\n"; if (!/\*\//) in_comment = 1; next }
{ code = code $0 "\n" }

END {
  flush_block()
  printf "<h1><code>remat/%s</code></h1>\n%s", name, intro
  if (index_list != "") printf "<ul class=\"index\">\n%s</ul>\n", index_list
  printf "%s", body
}
