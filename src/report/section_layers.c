#include "report/report_sections.h"

#include "graph/chain.h"

void section_layers(report_document *to, const remat_profile *profile, const remat_plan *plan)
{
    const remat_layer *layers = profile->layers;
    size_t n = profile->layer_count;
    document_open(to, "layers", '{');
    DOCUMENT_COLUMN(to, "index", n, document_number, layers[i].index);
    DOCUMENT_COLUMN(to, "name", n, document_text, layers[i].name);
    DOCUMENT_COLUMN(to, "type", n, document_text, remat_layer_type_name(layers[i].type));
    DOCUMENT_COLUMN(to, "activation_bytes", n, document_number, layers[i].modes[REMAT_KEEP].activation_bytes);
    DOCUMENT_COLUMN(to, "output_bytes", n, document_number, layers[i].output_bytes);
    DOCUMENT_COLUMN(to, "forward_cost", n, document_number, layers[i].modes[REMAT_KEEP].forward_cost);
    DOCUMENT_COLUMN(to, "backward_cost", n, document_number, layers[i].modes[REMAT_KEEP].backward_cost);
    if (plan) {
        DOCUMENT_COLUMN(to, "decision", n, document_text, remat_plan_decision_name(plan, i));
        DOCUMENT_COLUMN(to, "forwards", n, document_number, remat_plan_forwards(plan, i));
    }
    document_close(to, '}');
}
