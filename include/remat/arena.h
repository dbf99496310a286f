/* Remat: placing tensors in one piece of memory, the arena.
 *
 * Tensors whose live ranges do not overlap may share bytes. You say when each tensor is live and how large it is. The
 * library finds an offset for each tensor. It looks for offsets that need as few bytes in all as possible.
 *
 *     remat_lifetime tensors[2] = {{.lower = 0, .upper = 4, .size = 1000}, {.lower = 4, .upper = 6, .size = 800}};
 *     remat_arena_result result;
 *     remat_arena_place(ctx, tensors, 2, NULL, &result);
 */
#ifndef REMAT_ARENA_H
#define REMAT_ARENA_H

#include <stdbool.h>
#include <stdio.h>

#include <remat/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One tensor. */
typedef struct remat_lifetime {
    uint64_t lower, upper; /* it is live during [lower, upper) */
    uint64_t size;         /* in bytes; a tensor of 0 bytes takes no room */
    uint64_t offset;       /* set by remat_arena_place: a multiple of the alignment */
} remat_lifetime;

typedef struct remat_arena_options {
    size_t struct_size;
    uint64_t alignment; /* offsets are multiples of it, and sizes are rounded up to it. Default 1 */
    uint64_t capacity;  /* stop at the first placement that fits into it. 0 (the default): as small as possible */
    uint64_t effort;    /* how many search nodes to visit. 0: heuristics only. The default takes seconds at most */
} remat_arena_options;
void remat_arena_options_init_sized(remat_arena_options *options, size_t size);
static inline void remat_arena_options_init(remat_arena_options *options)
{
    remat_arena_options_init_sized(options, sizeof *options);
}

typedef struct remat_arena_result {
    uint64_t height;      /* the bytes that the placement needs */
    uint64_t lower_bound; /* no placement needs less; if it equals height, the placement is optimal */
} remat_arena_result;

/* Places the tensors and sets their offsets. The same input gives the same offsets on every machine. `options` NULL:
 * the defaults.
 *   REMAT_INFEASIBLE  no placement within the capacity was found. The offsets are those of the best one found.
 *   REMAT_INVALID     a tensor has upper <= lower (the message has its position), the sizes sum to 2^63 or more, or
 *                     the alignment is 0. REMAT_NO_MEMORY. */
remat_status remat_arena_place_sized(remat_context *context, remat_lifetime *lifetimes, size_t lifetime_size,
                                     size_t count, const remat_arena_options *options, remat_arena_result *result,
                                     size_t result_size);
static inline remat_status remat_arena_place(remat_context *context, remat_lifetime *lifetimes, size_t count,
                                             const remat_arena_options *options, remat_arena_result *result)
{
    return remat_arena_place_sized(context, lifetimes, sizeof *lifetimes, count, options, result, sizeof *result);
}

/* Checks a placement, whoever made it. REMAT_CHECK_FAILED: two tensors that are live at the same time share bytes, or
 * an offset is not aligned, or a tensor ends above `height`. The message has their positions. REMAT_NO_MEMORY. */
remat_status remat_arena_check_sized(remat_context *context, const remat_lifetime *lifetimes, size_t lifetime_size,
                                     size_t count, uint64_t alignment, uint64_t height);
static inline remat_status remat_arena_check(remat_context *context, const remat_lifetime *lifetimes, size_t count,
                                             uint64_t alignment, uint64_t height)
{
    return remat_arena_check_sized(context, lifetimes, sizeof *lifetimes, count, alignment, height);
}

/* ---- tensors from a CSV file ---- */

/* The tensors of a CSV file whose first line names the columns id, lower, upper and size (docs/formats.md). Other
 * columns are kept, so that the rows can be written back with a column `offset`. */
typedef struct remat_lifetime_table remat_lifetime_table;

/* Reads a stream to its end. `name` stands for it in messages. REMAT_BAD_INPUT: the error on the context names the
 * file, the line and the column. REMAT_IO, REMAT_NO_MEMORY. */
remat_status remat_lifetime_table_read(remat_context *context, FILE *stream, const char *name,
                                       remat_lifetime_table **table);
void remat_lifetime_table_destroy(remat_lifetime_table *table);

/* How many rows the table has. */
size_t remat_lifetime_table_count(const remat_lifetime_table *table);

/* Places the tensors of the table, and checks their offsets, as the two calls above do. */
remat_status remat_lifetime_table_place_sized(remat_lifetime_table *table, const remat_arena_options *options,
                                              remat_arena_result *result, size_t result_size);
static inline remat_status remat_lifetime_table_place(remat_lifetime_table *table, const remat_arena_options *options,
                                                      remat_arena_result *result)
{
    return remat_lifetime_table_place_sized(table, options, result, sizeof *result);
}
remat_status remat_lifetime_table_check(const remat_lifetime_table *table, uint64_t alignment, uint64_t height);

/* A row, by its position from 0: the tensor, and its id. The id belongs to the table. REMAT_INVALID past the end; the
 * id is NULL there. */
remat_status remat_lifetime_table_get_sized(const remat_lifetime_table *table, size_t row, remat_lifetime *lifetime,
                                            size_t lifetime_size);
static inline remat_status remat_lifetime_table_get(const remat_lifetime_table *table, size_t row,
                                                    remat_lifetime *lifetime)
{
    return remat_lifetime_table_get_sized(table, row, lifetime, sizeof *lifetime);
}
const char *remat_lifetime_table_id(const remat_lifetime_table *table, size_t row);

/* Writes the rows as they were read, with a last column `offset`. REMAT_IO. */
remat_status remat_lifetime_table_write(const remat_lifetime_table *table, FILE *stream);

/* Writes the rows and the figures of the placement as one JSON object. `options` and `result` are those of the
 * placement; `fits` says whether it fits the capacity. REMAT_IO. */
remat_status remat_lifetime_table_write_json_sized(const remat_lifetime_table *table,
                                                   const remat_arena_options *options, const remat_arena_result *result,
                                                   size_t result_size, bool fits, FILE *stream);
static inline remat_status remat_lifetime_table_write_json(const remat_lifetime_table *table,
                                                           const remat_arena_options *options,
                                                           const remat_arena_result *result, bool fits, FILE *stream)
{
    return remat_lifetime_table_write_json_sized(table, options, result, sizeof *result, fits, stream);
}

#ifdef __cplusplus
}
#endif
#endif
