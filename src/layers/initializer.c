#include "layers/initializer.h"

#include "layers/layer_resolve.h"

#include <math.h>

enum {
    DEFAULT,
    ZEROS,
    ONES,
    NORMAL,
    XAVIER_UNIFORM,
    XAVIER_NORMAL,
    HE_UNIFORM,
    HE_NORMAL,
    LECUN_UNIFORM,
    LECUN_NORMAL
};

const char *const initializer_names[] = {"default",        "zeros",         "ones",       "normal",
                                         "xavier_uniform", "xavier_normal", "he_uniform", "he_normal",
                                         "lecun_uniform",  "lecun_normal",  NULL};

/* Xavier: Glorot and Bengio (2010); he: He, Zhang, Ren and Sun (2015); lecun: LeCun, Bottou, Orr and Müller (1998). */
static layer_fill fill_of(const initializer *how, double in, double out, double *scale)
{
    *scale = 0;
    switch (how->choice) {
    case ZEROS: return LAYER_ZEROS;
    case ONES: return LAYER_ONES;
    case NORMAL: *scale = how->scale; return LAYER_NORMAL;
    case XAVIER_UNIFORM: *scale = sqrt(6 / (in + out)); return LAYER_UNIFORM;
    case XAVIER_NORMAL: *scale = sqrt(2 / (in + out)); return LAYER_NORMAL;
    case HE_UNIFORM: *scale = sqrt(6 / in); return LAYER_UNIFORM;
    case HE_NORMAL: *scale = sqrt(2 / in); return LAYER_NORMAL;
    case LECUN_UNIFORM: *scale = sqrt(3 / in); return LAYER_UNIFORM;
    case LECUN_NORMAL: *scale = sqrt(1 / in); return LAYER_NORMAL;
    default: *scale = 1 / sqrt(in); return LAYER_UNIFORM;
    }
}

remat_status initializer_add(remat_context *context, layer_node *layer, const initializer *how, const uint64_t dims[4],
                             uint64_t fan_in, uint64_t fan_out, uint64_t outputs)
{
    double scale;
    layer_fill fill = fill_of(how, (double)fan_in, (double)fan_out, &scale);
    REMAT_TRY(layer_add_parameter(context, layer, "weight", dims, fill, scale));
    if (outputs == 0)
        return REMAT_OK;
    bool plain = how->choice == DEFAULT;
    return layer_add_parameter(context, layer, "bias", (uint64_t[4]){outputs}, plain ? LAYER_UNIFORM : LAYER_ZEROS,
                               plain ? scale : 0);
}
