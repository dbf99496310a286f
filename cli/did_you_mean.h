/* "Did you mean": the word of a list that is most like one that was mistyped. */
#ifndef REMAT_CLI_DID_YOU_MEAN_H
#define REMAT_CLI_DID_YOU_MEAN_H

#include <stddef.h>

typedef struct did_you_mean {
    const char *typed;
    const char *nearest; /* of the words so far; NULL: none is close */
    size_t apart;        /* letters between them */
} did_you_mean;

/* Compares one more word, which must live as long as the struct. Begin with {.typed = TEXT}. */
void did_you_mean_try(did_you_mean *words, const char *word);

#endif
