/* Placeholders in the texts of a repeated group: {i} is the number of the copy, {in} the layer directly before it. */
#ifndef REMAT_MODEL_MODEL_COPY_H
#define REMAT_MODEL_MODEL_COPY_H

#include "base/text_pool.h"

typedef struct model_copy {
    uint64_t number;    /* from 0 */
    const char *before; /* the layer before the copy's first; NULL: none */
} model_copy;

/* Fills in the placeholders of a text. The result is in the pool, or is the text itself if it has none. REMAT_INVALID:
 * braces around anything else, or {in} without a layer before the copy. */
remat_status model_copy_fill(const model_copy *copy, text_pool *pool, const char *text, const char **filled);

#endif
