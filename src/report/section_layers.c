#include "report/report_sections.h"

void section_layers(report_document *to, const remat_profile *profile, const remat_plan *plan)
{
    size_t n = remat_profile_layer_count(profile);
    document_open(to, "layers", '{');
#define COLUMN(key, write, value)                                   \
    document_open(to, key, '[');                                    \
    for (size_t i = 0; i < n; i++) {                                \
        const remat_layer *layer = remat_profile_layer(profile, i); \
        (void)layer;                                                \
        write(to, NULL, value);                                     \
    }                                                               \
    document_close(to, ']')
    COLUMN("index", document_number, layer->index);
    COLUMN("name", document_text, layer->name);
    COLUMN("type", document_text, remat_layer_type_name(layer->type));
    COLUMN("activation_bytes", document_number, layer->modes[REMAT_KEEP].activation_bytes);
    COLUMN("output_bytes", document_number, layer->output_bytes);
    COLUMN("forward_cost", document_number, layer->modes[REMAT_KEEP].forward_cost);
    COLUMN("backward_cost", document_number, layer->modes[REMAT_KEEP].backward_cost);
    if (plan) {
        COLUMN("decision", document_text, remat_plan_decision_name(plan, i));
        COLUMN("forwards", document_number, remat_plan_forwards(plan, i));
    }
#undef COLUMN
    document_close(to, '}');
}
