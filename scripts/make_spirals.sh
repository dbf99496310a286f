#!/bin/sh
# Writes examples/data/spirals.csv: points of two spirals that wind around each other, each with a little noise, and which
# spiral a point is on. The same numbers every time: the noise comes from a small generator of its own.
set -eu
export LC_ALL=C
awk '
function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }
BEGIN {
    state = 20240229
    pi = atan2(0, -1)
    print "x,y,spiral"
    for (i = 0; i < 200; i++)
        for (spiral = 0; spiral < 2; spiral++) {
            # 77 and 200 have no common divisor: all places, mixed, so that the last rows are good for validation.
            turn = 0.25 + 3.25 * pi * (77 * i % 200) / 200
            radius = turn / (3.5 * pi)
            angle = turn + pi * spiral
            x = radius * cos(angle) + 0.03 * (uniform() - 0.5)
            y = radius * sin(angle) + 0.03 * (uniform() - 0.5)
            printf "%.4f,%.4f,%d\n", x, y, spiral
        }
}' > "$(dirname "$0")/../examples/data/spirals.csv"
