/* Names of layers and blocks. Comparisons ignore case and treat '-' as '_', as in the files. */
#ifndef REMAT_MODEL_MODEL_NAMES_H
#define REMAT_MODEL_MODEL_NAMES_H

#include <stdbool.h>

#include <remat/context.h>

enum { MODEL_NAME_LONGEST = 1023 };
#define MODEL_NAME_NONE UINT32_MAX

/* Checks that a layer or block may have this name. The message of REMAT_INVALID says what is wrong. `what` is "layer"
 * or "block". */
remat_status model_name_check(remat_context *context, const char *what, const char *name);

/* Names to numbers: a hash table that grows. It keeps the pointers, not copies. */
typedef struct model_names {
    remat_context *context;
    struct model_name_slot *slots;
    size_t slot_count, used;
} model_names;

void model_names_begin(model_names *names, remat_context *context);
void model_names_end(model_names *names);
/* MODEL_NAME_NONE where it is not there. */
uint32_t model_names_find(const model_names *names, const char *name);
/* Makes room for one more name; after it model_names_add() cannot fail. */
remat_status model_names_reserve(model_names *names);
/* `name` must not be there yet. */
void model_names_add(model_names *names, const char *name, uint32_t number);
/* The name most like `name`, for "did you mean"; NULL where none is close. */
const char *model_names_nearest(const model_names *names, const char *name);

#endif
