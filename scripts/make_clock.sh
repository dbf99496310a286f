#!/bin/sh
# Writes examples/data/clock.txt: the times of a day in digits and in words, shuffled, several times over. The same text
# every time: the order comes from a small generator of its own.
set -eu
export LC_ALL=C
awk '
function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }
function words(n) { return n < 21 ? small[n] : small[20] "-" small[n - 20] }
function phrase(hour, minute,    past) {
    past = minute <= 30
    hour = (hour + !past) % 12
    if (!past) minute = 60 - minute
    if (minute == 0) return words(hour ? hour : 12) " o\047clock"
    if (minute == 15) minute = "a quarter"
    else if (minute == 30) minute = "half"
    else minute = words(minute) (minute % 5 ? minute == 1 ? " minute" : " minutes" : "")
    return minute (past ? " past " : " to ") words(hour ? hour : 12)
}
BEGIN {
    split("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen " \
          "eighteen nineteen twenty", small, " ")
    state = 20240229
    for (round = 0; round < 4; round++) {
        for (i = 0; i < 1440; i++) order[i] = i
        for (i = 1439; i > 0; i--) {
            j = int(uniform() * (i + 1))
            swap = order[i]; order[i] = order[j]; order[j] = swap
        }
        for (i = 0; i < 1440; i++)
            printf "%02d:%02d is %s.\n", order[i] / 60, order[i] % 60, phrase(int(order[i] / 60), order[i] % 60)
    }
}' > "$(dirname "$0")/../examples/data/clock.txt"
