#include "graph_file.h"
#include "shown.h"

remat_status graph_file_read(remat_context *context, const file_bytes *file, remat_graph **graph)
{
    FILE *stream = file_bytes_open(file);
    *graph = NULL;
    remat_status status = stream ? remat_graph_read(context, stream, file->name, graph) : REMAT_NO_MEMORY;
    if (stream)
        fclose(stream);
    if (status != REMAT_OK)
        command_fail(context, status);
    return status;
}

remat_status graph_file_load(remat_context *context, const char *path, remat_graph **graph)
{
    file_bytes file;
    *graph = NULL;
    remat_status status = file_bytes_read(context, path, &file);
    if (status == REMAT_OK)
        status = graph_file_read(context, &file, graph);
    file_bytes_free(&file);
    return status;
}

void graph_file_title(FILE *to, const remat_graph *graph)
{
    char tensors[REMAT_COUNT_TEXT], actions[REMAT_COUNT_TEXT];
    const char *name = remat_graph_name(graph);
    fprintf(to, "%s, %s tensors, %s actions", name && *name ? shown(name) : "graph",
            remat_count_print(remat_graph_tensor_count(graph), tensors),
            remat_count_print(remat_graph_action_count(graph), actions));
}

static const char *name_or_number(const char *name, const char *what, uint32_t number)
{
    static char texts[4][40];
    static unsigned next;
    if (name && *name)
        return shown(name);
    char *text = texts[next++ % 4];
    snprintf(text, sizeof texts[0], "%s %u", what, number);
    return text;
}

const char *graph_action_shown(const remat_graph *graph, uint32_t action)
{
    remat_graph_action about;
    remat_graph_action_init(&about);
    remat_graph_get_action(graph, action, &about);
    return name_or_number(about.name, "action", action);
}

const char *graph_tensor_shown(const remat_graph *graph, uint32_t tensor)
{
    remat_graph_tensor about;
    remat_graph_tensor_init(&about);
    remat_graph_get_tensor(graph, tensor, &about);
    return name_or_number(about.name, "tensor", tensor);
}
