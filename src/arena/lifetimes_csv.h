/* What the reader and the writer of lifetimes share. */
#ifndef REMAT_ARENA_LIFETIMES_CSV_H
#define REMAT_ARENA_LIFETIMES_CSV_H

#include <remat/arena.h>

/* `text` holds, one string after the other: the first line, then for every row its id and the row. Lines stand there as
 * they are written, without a column `offset`: the writer adds its own. */
struct remat_lifetime_table {
    remat_context *context;
    remat_lifetime *rows;
    size_t *starts; /* of the ids, in `text` */
    char *text;
    size_t count, row_room, start_room;
    size_t text_bytes, text_room;
};

#endif
