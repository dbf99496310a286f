/* A program as it was written for release 0.1, in parts. It includes the headers of that release and calls every
 * function of them; what it prints does not depend on time or machine. Behind every struct that the library fills in
 * lie guard bytes: a library that writes past the end of 0.1's struct is caught. */
#ifndef REMAT_TESTS_ABI_PROGRAM_0_1_H
#define REMAT_TESTS_ABI_PROGRAM_0_1_H

#include "remat_0_1.h"

#include <stdlib.h>
#include <string.h>

/* Ends the program with 1 where something is not so. */
void check_at(bool holds, const char *what, const char *file, int line);
#define CHECK(what) check_at(what, #what, __FILE__, __LINE__)

/* The same for a status; says what the context knows. */
void status_at(const remat_context *context, remat_status got, remat_status wanted, const char *file, int line);
#define OK(context, call)            status_at(context, call, REMAT_OK, __FILE__, __LINE__)
#define FAILS(context, call, wanted) status_at(context, call, wanted, __FILE__, __LINE__)

/* A variable `name` of a type with guard bytes behind it, all of them other than 0; and a look at whether they are
 * still there. */
enum { GUARD_BYTES = 256 };
#define GUARDED(type, name)                               \
    struct {                                              \
        type value;                                       \
        unsigned char guard[GUARD_BYTES];                 \
    } name##_guarded;                                     \
    memset(&name##_guarded, 0xa5, sizeof name##_guarded); \
    type *const name = &name##_guarded.value
#define INTACT(name) CHECK(guard_is_intact(name##_guarded.guard))
bool guard_is_intact(const unsigned char guard[GUARD_BYTES]);

/* A file of this name in the program's own folder; the text is good until the next call. */
const char *scratch_path(const char *name);

/* The parts. */
void use_profiles(remat_context *context);
void use_plans(remat_context *context);
void use_arenas(remat_context *context);
void use_checkpointers(remat_context *context);
void use_tapes(remat_context *context);
void use_models(remat_context *context);
void use_trainers(remat_context *context);
void use_predictors(remat_context *context);
void use_reports(remat_context *context);

/* A chain of eight layers, three of them with a mode `half`. The caller destroys it. */
remat_profile *made_profile(remat_context *context);

/* A compiled model of two inputs and one output, with a block of two layers; and its data. */
remat_model *made_model(remat_context *context);
remat_status made_sample(void *user, uint64_t sample, void *const *inputs, void *labels);

#endif
