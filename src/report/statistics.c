/* Shares and means for people to read. Nothing is planned by them: what is planned is in integers. */
#include "base/options.h"
#include "plan/chain/plan_object.h"

double remat_layer_cost_ratio(const remat_layer *layer)
{
    uint64_t bytes = layer->modes[0].activation_bytes;
    return bytes == 0 ? 0.0 : (double)layer->recompute_flops / (double)bytes;
}

void remat_plan_get_statistics_sized(const remat_plan *plan, remat_plan_statistics *statistics, size_t statistics_size)
{
    const remat_plan_figures *figures = &plan->figures;
    size_t n = plan->chain->layer_count;
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += (double)plan->chain->layers[i].modes[REMAT_KEEP].activation_bytes;
    remat_plan_statistics found = {
        .estimated_bytes = figures->estimated_bytes,
        .mean_activation_bytes = n ? total / (double)n : 0.0,
        .layers = n,
        .recomputed_layers = figures->schedule.recomputed_layers,
        .recomputed_ratio = n ? (double)figures->schedule.recomputed_layers / (double)n : 0.0,
    };
    found.recomputed_percent = found.recomputed_ratio * 100.0;
    if (figures->feasible && figures->schedule.peak_bytes < figures->base_peak_bytes) {
        found.peak_reduction_bytes = figures->base_peak_bytes - figures->schedule.peak_bytes;
        found.peak_reduction_percent = 100.0 * (double)found.peak_reduction_bytes / (double)figures->base_peak_bytes;
    }
    remat_struct_give(statistics, statistics_size, &found, sizeof found);
}
