#include "onnx_file.h"
#include "shown.h"
#include "waiting.h"

#include <string.h>

void onnx_file_dimension(struct argp_state *state, remat_context *context, char *argument, import_settings *settings)
{
    char *sign = strrchr(argument, '=');
    if (!sign || sign == argument || !sign[1])
        argp_error(state, "--dim takes NAME=N, not '%s'", shown(argument));
    else if (settings->dimension_count == DIMENSIONS_MOST)
        argp_error(state, "--dim may be given %d times at most", DIMENSIONS_MOST);
    else {
        *sign = '\0';
        settings->dimensions[settings->dimension_count].name = argument;
        settings->dimensions[settings->dimension_count++].size =
            command_number(state, context, "--dim", INT32_MAX, sign + 1);
    }
}

#ifdef REMAT_HAS_ONNX
#include "onnx_import.h"

bool onnx_file_is_read(void)
{
    return true;
}

static void print_warning(void *user, const char *message)
{
    (void)user;
    waiting_clear();
    fprintf(stderr, "remat: warning: %s\n", shown(message));
}

remat_status onnx_file_import(remat_context *context, const file_bytes *file, const import_settings *settings,
                              remat_graph **graph)
{
    onnx_dimension dimensions[DIMENSIONS_MOST];
    const onnx_options options = {.batch = settings->batch,
                                  .dimensions = dimensions,
                                  .dimension_count = settings->dimension_count,
                                  .warn = print_warning};
    char message[ONNX_MESSAGE];
    for (size_t i = 0; i < settings->dimension_count; i++)
        dimensions[i] = (onnx_dimension){settings->dimensions[i].name, settings->dimensions[i].size};
    remat_status status = onnx_import(context, file->bytes, file->count, file->name, &options, graph, message);
    if (status != REMAT_OK)
        fprintf(stderr, "remat: %s\n", shown(message));
    return status;
}
#else
bool onnx_file_is_read(void)
{
    return false;
}

remat_status onnx_file_import(remat_context *context, const file_bytes *file, const import_settings *settings,
                              remat_graph **graph)
{
    (void)context, (void)settings;
    *graph = NULL;
    fprintf(
        stderr,
        "remat: %s: this is an ONNX file, and this build does not read them: protobuf-c was missing (on Debian, the "
        "packages protobuf-c-compiler and libprotobuf-c-dev)\n",
        shown(file->name));
    return REMAT_BAD_INPUT;
}
#endif
