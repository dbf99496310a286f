/* Placeholders in the texts of a repeated group: {i} is the number of the copy, {in} the layer that flows into it. */
#ifndef REMAT_MODEL_MODEL_COPY_H
#define REMAT_MODEL_MODEL_COPY_H

#include "base/text_pool.h"

typedef struct model_copy {
    uint64_t number;    /* from 0 */
    const char *before; /* the layer before the copy's first; NULL: none */
} model_copy;

/* The text with its placeholders filled in, in the pool; the text itself where it has none. REMAT_INVALID for braces
 * around anything else, and for {in} where nothing stands before. */
remat_status model_copy_fill(const model_copy *copy, text_pool *pool, const char *text, const char **filled);

#endif
