/* Remat: placing tensors in one piece of memory.
 *
 * Tensors that live at different times may share bytes. Given when each lives and how large it is, this finds offsets in
 * as few bytes as it can. */
#ifndef REMAT_ARENA_H
#define REMAT_ARENA_H

#include <stdbool.h>
#include <stdio.h>

#include <remat/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_lifetime {
    uint64_t lower, upper; /* alive during [lower, upper) */
    uint64_t size;         /* bytes; 0 is allowed and takes no room */
    uint64_t offset;       /* the answer: a multiple of the alignment */
} remat_lifetime;

typedef struct remat_arena_options {
    size_t struct_size;
    uint64_t alignment; /* 1 or more; sizes are rounded up to it */
    uint64_t capacity;  /* 0: as low as possible; else any placement within it will do */
    uint64_t effort;    /* how hard to search, in nodes: 0 leaves it at heuristics; the default takes seconds at most */
} remat_arena_options;
void remat_arena_options_init(remat_arena_options *options);

typedef struct remat_arena_result {
    uint64_t height;      /* bytes the placement needs */
    uint64_t lower_bound; /* bytes no placement can go under; equal to height: proven optimal */
} remat_arena_result;

/* Places the tensors and writes their offsets. The same input gives the same answer on every machine. REMAT_INVALID: a
 * lifetime that does not begin before it ends (the message names its row), or sizes that add up past 2^63.
 * REMAT_INFEASIBLE: nothing within the capacity was found; the best placement is written all the same. */
remat_status remat_arena_place(remat_context *context, remat_lifetime *lifetimes, size_t count,
                               const remat_arena_options *options, remat_arena_result *result);

/* REMAT_CHECK_FAILED where two tensors share bytes while both are alive, or one lies past `height`; the message names
 * their rows. */
remat_status remat_arena_check(remat_context *context, const remat_lifetime *lifetimes, size_t count,
                               uint64_t alignment, uint64_t height);

/* Lifetimes from a CSV file whose first line names the columns id, lower, upper and size (docs/formats.md). The table
 * keeps every row as it was read, so that it can be written again with the offsets. */
typedef struct remat_lifetime_table remat_lifetime_table;

/* Reads the stream to its end; `name` is for messages. REMAT_BAD_INPUT with file, line and column; *table is NULL then.
 * The caller destroys the table, and does so before the context. */
remat_status remat_lifetime_table_read(remat_context *context, FILE *stream, const char *name,
                                       remat_lifetime_table **table);
/* NULL is fine. */
void remat_lifetime_table_destroy(remat_lifetime_table *table);

size_t remat_lifetime_table_count(const remat_lifetime_table *table);
/* As many as the count, in the order of the file, for remat_arena_place to write offsets into. Owned by the table, as
 * the ids are. */
remat_lifetime *remat_lifetime_table_rows(remat_lifetime_table *table);
const char *remat_lifetime_table_id(const remat_lifetime_table *table, size_t row);

/* The same rows in the same order with a last column `offset`. REMAT_IO where writing fails. */
remat_status remat_lifetime_table_write(const remat_lifetime_table *table, FILE *stream);
/* As one JSON object with the figures: the options that the rows were placed with, what came of it, and whether that
 * fits the capacity. */
remat_status remat_lifetime_table_write_json(const remat_lifetime_table *table, const remat_arena_options *options,
                                             const remat_arena_result *result, bool fits, FILE *stream);

#ifdef __cplusplus
}
#endif
#endif
