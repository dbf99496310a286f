#include "plan/chain/plan_object.h"

#include "base/alloc.h"

/* How many recomputed layers stand alone and have nothing to give but their output. */
static size_t bare_single_blocks(const remat_plan *plan)
{
    size_t bare = 0, n = plan->chain->layer_count;
    for (size_t i = 0; i < n; i++) {
        const remat_layer *layer = &plan->chain->layers[i];
        bare += plan->layers[i].decision == REMAT_NO_SAVE &&
                layer->output_bytes == layer->modes[REMAT_KEEP].activation_bytes;
    }
    return bare;
}

void plan_object_explain(remat_plan *plan)
{
    const remat_plan_figures *figures = &plan->figures;
    uint64_t peak = figures->schedule.peak_bytes, base = figures->base_peak_bytes;
    uint64_t recomputed = figures->schedule.recomputed_layers;
    if (peak < base || plan->chain->layer_count == 0)
        return;
    if (plan->draft.remark[0])
        snprintf(plan->remark, sizeof plan->remark, "saves nothing: %s", plan->draft.remark);
    else if (recomputed == 0)
        snprintf(plan->remark, sizeof plan->remark, "saves nothing: no layer is recomputed");
    else if (bare_single_blocks(plan) == recomputed && peak == base)
        snprintf(plan->remark, sizeof plan->remark,
                 "saves nothing: a block keeps its output, and the recomputed layers have nothing else "
                 "(activation_bytes equals output_bytes)");
    else {
        char text[REMAT_SIZE_TEXT];
        snprintf(plan->remark, sizeof plan->remark,
                 "saves nothing: the peak %s %s, at step %llu; recomputing costs as much there as it frees",
                 peak == base ? "stays at" : "rises to", remat_size_print(peak, text),
                 (unsigned long long)figures->schedule.peak_step);
    }
}
