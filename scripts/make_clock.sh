#!/bin/sh
# Writes examples/data/clock.txt: the times of a day in digits and in words, shuffled, four times over. One time in ten is
# not in it, but in clock_unseen.txt: what a model says to those it did not learn by heart. All lines are 35 bytes long, so
# that samples of whole lines begin at the start of one. The same text every time: the order comes from a small generator
# of its own.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../examples/data"
awk '
function uniform() { state = (state * 16807) % 2147483647; return state / 2147483647 }
function words(n) { return n < 21 ? small[n] : small[20] "-" small[n - 20] }
function phrase(hour, minute,    past) {
    past = minute <= 30
    hour = (hour + !past) % 12
    if (!past) minute = 60 - minute
    if (minute == 0) return words(hour ? hour : 12) " o\047clock"
    minute = minute == 15 ? "a quarter" : minute == 30 ? "half" : words(minute)
    return minute (past ? " past " : " to ") words(hour ? hour : 12)
}
function line(time,    hour, minute) {
    hour = int(time / 60); minute = time % 60
    return sprintf("%-34s", sprintf("%02d:%02d is %s.", hour, minute, phrase(hour, minute)))
}
function unseen(time) { return (int(time / 60) + time) % 10 == 2 }
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
            if (!unseen(order[i])) print line(order[i]) > "clock.txt"
            else if (round == 0) print line(order[i]) > "clock_unseen.txt"
    }
}'
