/* The readers of the two file formats, behind remat_profile_read. */
#ifndef REMAT_GRAPH_PROFILE_READ_H
#define REMAT_GRAPH_PROFILE_READ_H

#include "graph/chain.h"

/* Each fills an empty chain from the stream, which stands in line `line` with nothing but white space before. */
remat_status remat_profile_read_json(remat_profile *chain, FILE *stream, const char *name, uint64_t line);
remat_status remat_profile_read_csv(remat_profile *chain, FILE *stream, const char *name, uint64_t line);

/* The figures of a layer that both formats name alike, and where they go in the options. */
typedef struct profile_field {
    const char *name;
    size_t offset; /* of a uint64_t in remat_layer_options */
    bool required;
} profile_field;
#define PROFILE_FIELD_COUNT 8
extern const profile_field remat_profile_fields[PROFILE_FIELD_COUNT];
/* The field's number, or -1. */
int remat_profile_field_find(const char *name);

/* The type hint of that name; REMAT_BAD_INPUT lists them. */
remat_status remat_layer_type_parse(remat_context *context, const char *text, const remat_place *where,
                                    remat_layer_type *type);

#endif
