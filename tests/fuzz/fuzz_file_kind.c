/* What a file is, by its beginning: the reader of each kind reads only files of that kind. */
#include "fuzz/fuzz.h"

void fuzz_file_kind(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    FILE *stream = fuzz_stream(data, size);
    remat_file_kind kind;
    bool told = fuzz_accepted(context, remat_file_kind_tell(context, stream, "text", &kind));
    rewind(stream);
    remat_profile *profile;
    if (remat_profile_read(context, stream, "text", &profile) == REMAT_OK)
        FUZZ_CHECK(told && (kind == REMAT_FILE_PROFILE || kind == REMAT_FILE_LIFETIMES)); /* a column `lower` */
    remat_profile_destroy(profile);
    rewind(stream);
    remat_report *report;
    FUZZ_CHECK(remat_report_create(context, &report) == REMAT_OK);
    if (remat_report_add_plan_file(report, "text", stream) == REMAT_OK)
        FUZZ_CHECK(told && kind == REMAT_FILE_PLAN);
    remat_report_destroy(report);
    rewind(stream);
    remat_model *model;
    if (remat_model_read(context, stream, "text", &model) == REMAT_OK)
        FUZZ_CHECK(told && kind == REMAT_FILE_MODEL);
    remat_model_destroy(model);
    rewind(stream);
    remat_graph *graph;
    if (remat_graph_read(context, stream, "text", &graph) == REMAT_OK)
        FUZZ_CHECK(told && kind == REMAT_FILE_GRAPH);
    remat_graph_destroy(graph);
    fclose(stream);
    fuzz_end(context);
}
