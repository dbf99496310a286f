# Turns the --help of one command into a page of mdoc(7).

# Text for a line of its own: a leading dot or quote, and backslashes, would be read as commands.
function plain(text) {
  gsub(/\\/, "\\e", text)
  gsub(/-/, "\\-", text)
  if (text ~ /^[.']/) text = "\\&" text
  return text
}

# -b, --budget=SIZE -> .It Fl b , Fl Fl budget Ns = Ns Ar SIZE
function option_line(names,    count, parts, i, line, name, value, at) {
  count = split(names, parts, /, /)
  line = ".It"
  for (i = 1; i <= count; i++) {
    name = parts[i]; value = ""
    at = index(name, "=")
    if (at) { value = substr(name, at + 1); name = substr(name, 1, at - 1) }
    line = line (i > 1 ? " ," : "")
    if (name ~ /^--/) line = line " Fl \\-" plain(substr(name, 3))
    else line = line " Fl " substr(name, 2)
    if (value != "") line = line " Ns = Ns Ar " plain(value)
  }
  return line
}

function section(name) { print ".Sh " name }

# What was written by hand, and the exit codes.
function before_examples(    line) {
  while ((getline line < extra) > 0) print line
  section("EXIT STATUS")
  print "As of"
  print ".Xr remat 1 ."
  told = 1
}

BEGIN {
  print ".\\\" Made by scripts/manual.sh from `remat " command " --help`."
  print ".Dd $Mdocdate$"
  print ".Dt REMAT-" toupper(command) " 1"
  print ".Os " version
  section("NAME")
  print ".Nm remat-" command
  print ".Nd " plain(summary)
  part = "usage"
}

part == "usage" && /^Usage: / {
  section("SYNOPSIS")
  print ".Nm remat " command
  sub(/^Usage: remat [a-z]+ ?/, "")
  gsub(/\[OPTION\.\.\.\]/, "")
  sub(/^ +/, "")
  print ".Op Ar option ..."
  for (i = 1; i <= NF; i++) {
    word = $i
    if (word ~ /^\[.*\.\.\.\]$/) print ".Op Ar " substr(word, 2, length(word) - 5) " ..."
    else if (word ~ /^\[.*\]$/) print ".Op Ar " substr(word, 2, length(word) - 2)
    else print ".Ar " word
  }
  section("DESCRIPTION")
  part = "words"
  next
}

part == "words" && /^ +-/ {
  section("OPTIONS")
  print ".Bl -tag -width Ds"
  part = "options"
}

part == "words" { if ($0 != "") { text = plain($0); gsub(/\. /, ".\n", text); print text } next }

part == "options" && /^ +-/ {
  text = $0
  sub(/^ +/, "", text)
  at = match(text, /  +[^ -]/)
  names = at ? substr(text, 1, at - 1) : text
  words = at ? substr(text, at) : ""
  sub(/^ +/, "", words)
  print option_line(names)
  if (words != "") print plain(words)
  next
}

part == "options" && /^ +[^ ]/ { sub(/^ +/, ""); print plain($0); next }

part == "options" && /^$/ { print ".El"; part = "rest"; next }

part == "rest" && /^(Mandatory|for any)/ { next }

part == "rest" && /^Examples?:/ {
  if (open) print ".Ed"
  before_examples()
  section("EXAMPLES")
  print ".Bd -literal"
  open = 1
  next
}

part == "rest" && /^[A-Z][a-z]+:$/ {
  if (open) print ".Ed"
  section(toupper(substr($0, 1, length($0) - 1)))
  print ".Bd -literal"
  open = 1
  next
}

part == "rest" && /^$/ { next }
part == "rest" { if (!open) { print ".Pp"; print plain($0) } else print plain($0) }

END {
  if (part == "options") print ".El"
  if (open) print ".Ed"
  if (!told) before_examples()
  section("SEE ALSO")
  print ".Xr remat 1"
}
