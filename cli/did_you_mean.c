#include "did_you_mean.h"

#include <string.h>

enum { LONGEST = 31, MOST_APART = 2 }; /* further apart it is another word */

/* Letters to put in, take out or exchange until `typed` is `word`; by Levenshtein's table, a row at a time. */
static size_t letters_apart(const char *typed, const char *word)
{
    size_t row[LONGEST + 1], length = strlen(word);
    if (length > LONGEST || strlen(typed) > LONGEST)
        return LONGEST;
    for (size_t n = 0; n <= length; n++)
        row[n] = n;
    for (size_t t = 1; typed[t - 1]; t++) {
        size_t diagonal = row[0];
        row[0] = t;
        for (size_t n = 1; n <= length; n++) {
            size_t exchanged = diagonal + (typed[t - 1] != word[n - 1]);
            size_t other = 1 + (row[n] < row[n - 1] ? row[n] : row[n - 1]);
            diagonal = row[n];
            row[n] = exchanged < other ? exchanged : other;
        }
    }
    return row[length];
}

void did_you_mean_try(did_you_mean *words, const char *word)
{
    size_t apart = letters_apart(words->typed, word), least = words->nearest ? words->apart : MOST_APART + 1;
    if (apart >= least || apart > strlen(word) / 2)
        return;
    words->nearest = word;
    words->apart = apart;
}
