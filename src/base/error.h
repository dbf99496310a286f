/* Recording what went wrong, and where. */
#ifndef REMAT_BASE_ERROR_H
#define REMAT_BASE_ERROR_H

#include <remat/context.h>

#include <stdbool.h>

/* Where something went wrong; start from REMAT_PLACE_NOWHERE and fill in what is known. */
typedef struct remat_place {
    const char *file;
    uint64_t line, layer, step;
    const char *field;
} remat_place;
#define REMAT_PLACE_NOWHERE ((remat_place){NULL, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, NULL})

/* Puts the details on the context and returns `status`, so that a caller can `return remat_fail(...)`. The message
 * becomes "FILE:LINE: layer L: FIELD: " with what is known, then the text. `where` may be NULL. */
remat_status remat_fail(remat_context *context, remat_status status, const remat_place *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds the figures of a budget that is too small to the last failure on the context, and returns its status.
 * `layer_name` NULL: not known. */
remat_status remat_fail_budget(remat_context *context, uint64_t budget_bytes, uint64_t needed_bytes,
                               const char *layer_name);

/* Adds words to the message of the last failure on the context, and returns its status. */
remat_status remat_fail_add(remat_context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts the file and line in front of the message of the last failure on the context, and returns its status. */
remat_status remat_fail_in_file(remat_context *context, const char *file, uint64_t line);

/* Drops warnings until it is called with false: for a search that makes what it makes again for good. */
void remat_context_set_quiet(remat_context *context, bool quiet);

/* Gives a warning with the same prefix to the warning function. */
void remat_warn(remat_context *context, const remat_place *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns from the calling function where `call` fails. */
#define REMAT_TRY(call)                    \
    do {                                   \
        remat_status try_status_ = (call); \
        if (try_status_ != REMAT_OK)       \
            return try_status_;            \
    } while (0)

#endif
