/* Remat: what calls return.
 *
 * The numbers are also the exit codes of the command line tool, so that scripts and C programs see the same answers. */
#ifndef REMAT_STATUS_H
#define REMAT_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* All statuses: name, number and text. The numbers never change. */
#define REMAT_STATUS_LIST(X)                                \
    X(REMAT_OK, 0, "done")                                  \
    X(REMAT_INTERNAL, 1, "internal error")                  \
    X(REMAT_INVALID, 2, "invalid parameter or wrong usage") \
    X(REMAT_BAD_INPUT, 3, "bad input file")                 \
    X(REMAT_INFEASIBLE, 4, "the budget is too small")       \
    X(REMAT_NO_MEMORY, 5, "out of memory")                  \
    X(REMAT_IO, 6, "input or output failed")                \
    X(REMAT_CHECK_FAILED, 7, "a check failed")              \
    X(REMAT_DIVERGED, 8, "the training diverged")

typedef enum remat_status {
#define X(name, value, text) name = value,
    REMAT_STATUS_LIST(X)
#undef X
} remat_status;

/* The text of a status, in English. Never NULL. The details of a failure are on the context. */
const char *remat_status_text(remat_status status);

#ifdef __cplusplus
}
#endif
#endif
