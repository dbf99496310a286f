/* The set of layer indexes that are taken: a hash table that grows, so that a million layers stay linear. */
#ifndef REMAT_GRAPH_INDEX_SET_H
#define REMAT_GRAPH_INDEX_SET_H

#include <stdbool.h>

#include <remat/context.h>

typedef struct index_set index_set;

remat_status index_set_create(remat_context *context, index_set **set);
void index_set_destroy(index_set *set);

/* Adds `index`; *known tells whether it was there. REMAT_NO_MEMORY leaves the set as it was. */
remat_status index_set_add(index_set *set, uint64_t index, bool *known);

#endif
