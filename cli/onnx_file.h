/* ONNX files, which become graphs. A build without protobuf-c refuses them. */
#ifndef REMAT_CLI_ONNX_FILE_H
#define REMAT_CLI_ONNX_FILE_H

#include "file_bytes.h"

/* What a file leaves open. */
enum { DIMENSIONS_MOST = 16 };
typedef struct import_settings {
    uint64_t batch; /* 0: not given */
    struct named_dimension {
        const char *name;
        uint64_t size;
    } dimensions[DIMENSIONS_MOST];
    size_t dimension_count;
} import_settings;

/* The row of the option in a command's table, without the group. */
#define ONNX_ROW_DIM(key)                                                                           \
    "dim", key, "NAME=N", 0,                                                                        \
        "for an ONNX file: the size of a dimension that the file calls NAME; may be given several " \
        "times"

/* Takes the value of that option, or stops with a usage error. */
void onnx_file_dimension(struct argp_state *state, remat_context *context, char *argument, import_settings *settings);

/* Imports the file. Says on stderr what is wrong, and warnings. */
remat_status onnx_file_import(remat_context *context, const file_bytes *file, const import_settings *settings,
                              remat_graph **graph);

/* Whether this build reads them. */
bool onnx_file_is_read(void);

#endif
