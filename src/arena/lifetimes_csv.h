/* What the reader and the writer of lifetimes share. */
#ifndef REMAT_ARENA_LIFETIMES_CSV_H
#define REMAT_ARENA_LIFETIMES_CSV_H

#include <remat/arena.h>

/* `text` holds strings one after the other: the first line, then the id and the line of every row. Lines are stored as
 * they will be written, without a column `offset`, which the writer adds. */
struct remat_lifetime_table {
    remat_context *context;
    remat_lifetime *rows;
    size_t *starts; /* of the ids, in `text` */
    char *text;
    size_t count, row_room, start_room;
    size_t text_bytes, text_room;
};

#endif
