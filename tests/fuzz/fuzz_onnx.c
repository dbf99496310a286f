/* An ONNX file: whatever graph is made of it has a legal order, and can be written and read. */
#include "fuzz/fuzz.h"

#include "onnx_import.h"

static void check_order(const remat_graph *graph)
{
    const size_t count = remat_graph_action_count(graph);
    uint32_t *plain = calloc(count + 1, sizeof *plain);
    remat_graph_figures figures;
    FUZZ_CHECK(plain);
    for (size_t i = 0; i < count; i++)
        plain[i] = (uint32_t)i;
    const remat_status status = remat_graph_replay(graph, plain, count, &figures);
    FUZZ_CHECK(status == REMAT_OK || status == REMAT_INVALID || status == REMAT_NO_MEMORY); /* or sums pass 2^63 */
    free(plain);
}

static void check_file(remat_context *context, const remat_graph *graph)
{
    fuzz_output output;
    remat_graph *again;
    fuzz_output_begin(&output);
    FUZZ_CHECK(remat_graph_write(graph, output.stream) == REMAT_OK);
    fuzz_output_end(&output);
    FILE *stream = fuzz_stream(output.text, output.length);
    const remat_status status = remat_graph_read(context, stream, "again", &again);
    FUZZ_CHECK(status == REMAT_OK || status == REMAT_NO_MEMORY);
    fclose(stream);
    if (status == REMAT_OK)
        FUZZ_CHECK(remat_graph_action_count(again) == remat_graph_action_count(graph));
    remat_graph_destroy(again);
    free(output.text);
}

void fuzz_onnx(const uint8_t *data, size_t size)
{
    static remat_context *context;
    if (!context)
        context = fuzz_begin();
    const uint64_t held = remat_context_bytes(context);
    const onnx_dimension sequence = {"sequence", 6};
    const onnx_options options = {.batch = 3, .dimensions = &sequence, .dimension_count = 1};
    char message[ONNX_MESSAGE];
    remat_graph *graph;
    const remat_status status = onnx_import(context, data, size, "file", &options, &graph, message);
    FUZZ_CHECK((status == REMAT_OK) == (graph != NULL));
    FUZZ_CHECK((status == REMAT_OK) == (message[0] == '\0'));
    FUZZ_CHECK(status == REMAT_OK || status == REMAT_BAD_INPUT || status == REMAT_INVALID || status == REMAT_NO_MEMORY);
    if (graph) {
        check_order(graph);
        check_file(context, graph);
    }
    remat_graph_destroy(graph);
    FUZZ_CHECK(remat_context_bytes(context) == held);
}
