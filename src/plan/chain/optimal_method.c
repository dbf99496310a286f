#include "plan/chain/optimal_method.h"

#include "plan/chain/exhaustive.h"

#include <string.h>

static const char *const names[] = {[METHOD_EXHAUSTIVE] = "exhaustive", [METHOD_INTERVALS] = "intervals"};

const char *optimal_method_name(optimal_method method)
{
    return names[method];
}

const char *optimal_method_find(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return names[i];
    return NULL;
}

remat_status optimal_method_choose(remat_context *context, const remat_profile *chain,
                                   const remat_plan_options *options, optimal_method *method)
{
    const char *asked = options->method;
    *method = exhaustive_applies(chain) ? METHOD_EXHAUSTIVE : METHOD_INTERVALS;
    if (!asked || strcmp(asked, "auto") == 0 || strcmp(asked, names[*method]) == 0)
        return REMAT_OK;
    if (!optimal_method_find(asked))
        return remat_fail(context, REMAT_INVALID, NULL, "there is no method '%.60s'; use auto, exhaustive or intervals",
                          asked);
    if (*method == METHOD_INTERVALS)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "the chain is too long for the method 'exhaustive' (%zu layers); use auto or intervals",
                          chain->layer_count);
    *method = METHOD_INTERVALS;
    return REMAT_OK;
}
