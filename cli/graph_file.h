/* What commands do with a graph from a file: one that is written as a graph, or imported. */
#ifndef REMAT_CLI_GRAPH_FILE_H
#define REMAT_CLI_GRAPH_FILE_H

#include "file_bytes.h"

/* Reads the graph of a file whose kind is known. Says on stderr what is wrong. */
remat_status graph_file_read(remat_context *context, const file_bytes *file, remat_graph **graph);
/* The same from a path. */
remat_status graph_file_load(remat_context *context, const char *path, remat_graph **graph);

/* "unet, 120 tensors, 300 actions" without the end of the line. */
void graph_file_title(FILE *to, const remat_graph *graph);

/* The name of an action or a tensor for people, or its number; good until the fourth call from now. */
const char *graph_action_shown(const remat_graph *graph, uint32_t action);
const char *graph_tensor_shown(const remat_graph *graph, uint32_t tensor);

#endif
