#!/bin/sh
# Writes examples/data/fruit.csv, a table as people have it: words for classes, gaps, a column that means nothing, rows sorted
# by class. And fruit_new.csv: rows without their fruit. The same numbers every time.
set -eu
export LC_ALL=C
folder=$(dirname "$0")/../examples/data
awk -v table="$folder/fruit.csv" -v new="$folder/fruit_new.csv" '
function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }
# One fruit: its weight in grams and its length in centimetres.
function draw(kind) {
    weight = sprintf("%.1f", typical[kind] * (0.7 + 0.6 * uniform()))
    length_cm = sprintf("%.1f", long[kind] * (0.8 + 0.4 * uniform()))
}
BEGIN {
    state = 20240301
    split("apple cherry melon", names, " ")
    split("150 8 1300", typical, " ")
    split("7.5 2.1 19", long, " ")
    print "number;fruit;weight;length" > table
    for (i = 0; i < 60; i++) {
        kind = int(i / 20) + 1
        draw(kind)
        printf "%d;%s;%s;%s\n", i + 1, names[kind], i % 10 == 9 ? "" : weight, length_cm > table
    }
    print "length;weight" > new
    for (i = 0; i < 5; i++) {
        draw(i % 3 + 1)
        printf "%s;%s\n", length_cm, i == 3 ? "NA" : weight > new
    }
}'
