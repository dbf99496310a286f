#include "graph/profile_read.h"

#include "base/input.h"

#include <string.h>

const profile_field remat_profile_fields[PROFILE_FIELD_COUNT] = {
    {"index", offsetof(remat_layer_options, index), true},
    {"activation_bytes", offsetof(remat_layer_options, activation_bytes), true},
    {"recompute_flops", offsetof(remat_layer_options, recompute_flops), true},
    {"output_bytes", offsetof(remat_layer_options, output_bytes), false},
    {"forward_cost", offsetof(remat_layer_options, forward_cost), false},
    {"backward_cost", offsetof(remat_layer_options, backward_cost), false},
    {"forward_workspace_bytes", offsetof(remat_layer_options, forward_workspace_bytes), false},
    {"backward_workspace_bytes", offsetof(remat_layer_options, backward_workspace_bytes), false},
};

int remat_profile_field_find(const char *name)
{
    for (int i = 0; i < PROFILE_FIELD_COUNT; i++)
        if (strcmp(remat_profile_fields[i].name, name) == 0)
            return i;
    return -1;
}

remat_status remat_layer_type_parse(remat_context *context, const char *text, const remat_place *where,
                                    remat_layer_type *type)
{
#define X(name, word)              \
    if (strcmp(text, word) == 0) { \
        *type = name;              \
        return REMAT_OK;           \
    }
    REMAT_LAYER_TYPE_LIST(X)
#undef X
#define X(name, word) " " word
    return remat_fail(context, REMAT_BAD_INPUT, where, "'%.60s' is not a type; use one of" REMAT_LAYER_TYPE_LIST(X),
                      text);
#undef X
}

/* Passes over a byte order mark. Other text may begin with the same byte; it is pushed back whole, which the C libraries
 * of today take for three bytes. */
static void skip_mark(FILE *stream)
{
    int bytes[3] = {getc(stream), EOF, EOF};
    if (bytes[0] == 0xef)
        bytes[1] = getc(stream);
    if (bytes[1] == 0xbb)
        bytes[2] = getc(stream);
    for (int i = 2; i >= 0 && bytes[2] != 0xbf; i--)
        ungetc(bytes[i], stream); /* which does nothing for EOF */
}

/* The first byte that is not white space; the stream still stands before it, in line *line. */
static remat_status find_first(remat_context *context, FILE *stream, const char *name, uint64_t *line, int *first)
{
    skip_mark(stream);
    int byte = getc(stream);
    uint64_t skipped = 0;
    for (*line = 1; byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n'; byte = getc(stream)) {
        *line += byte == '\n';
        REMAT_TRY(input_check_length(context, name, ++skipped));
    }
    ungetc(byte, stream);
    *first = byte;
    return REMAT_OK;
}

remat_status remat_profile_read(remat_context *context, FILE *stream, const char *name, remat_profile **profile)
{
    uint64_t line;
    int first;
    *profile = NULL;
    REMAT_TRY(find_first(context, stream, name, &line, &first));
    REMAT_TRY(remat_profile_create(context, profile));
    bool json = first == '{' || first == '['; /* a CSV starts with a column's name */
    remat_status status = json ? remat_profile_read_json(*profile, stream, name, line)
                               : remat_profile_read_csv(*profile, stream, name, line);
    if (status != REMAT_OK) {
        remat_profile_destroy(*profile);
        *profile = NULL;
    }
    return status;
}

remat_status remat_profile_load(remat_context *context, const char *path, remat_profile **profile)
{
    *profile = NULL;
    FILE *stream;
    REMAT_TRY(input_open(context, path, &stream));
    remat_status status = remat_profile_read(context, stream, path, profile);
    fclose(stream);
    return status;
}
