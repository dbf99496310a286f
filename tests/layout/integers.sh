#!/bin/sh
# What is planned is planned in integers (docs/architecture.md), so that plans are the same on every processor: these
# folders do without floating-point types, in comments too. Shares and means for people are made in src/report.
. tests/cli/support/expect.sh
for folder in src/graph src/plan/chain src/plan/graph src/arena; do
  found=$(grep -nwE 'float|double|strtod|strtof|atof|math\.h' "$folder"/*.[ch] || true)
  [ -z "$found" ] || complain "floating point in $folder: $found"
done
finish
