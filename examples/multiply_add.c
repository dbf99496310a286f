/* The checkpointer on a chain of layers that each multiply by 1.1 and add a little. The forward pass keeps the
 * activation of every third layer. The backward pass recomputes the others.
 *
 *     cc multiply_add.c -lremat -o multiply_add && ./multiply_add */
#include <stdio.h>
#include <string.h>

#include <remat/remat.h>
#include <remat/checkpointer.h>

enum { LAYERS = 12, FLOATS = 5 };

/* One layer: your own mathematics. The buffers come from Remat. */
static remat_status multiply_add(void *user, uint64_t layer, const float *input, size_t input_count, float *output,
                                 size_t output_count)
{
    (void)user;
    (void)input_count;
    for (size_t i = 0; i < output_count; i++)
        output[i] = input[i] * 1.1f + (float)layer * 0.01f;
    return REMAT_OK;
}

/* Gets the activation of every layer, from the last to the first, as a backward pass needs them, and compares each with
 * that of a forward pass that kept everything. */
static remat_status go_backward(const remat_checkpointer *cp, const remat_checkpointer_layer *layers,
                                const float all[LAYERS][FLOATS])
{
    for (size_t i = LAYERS; i-- > 0;) {
        float activation[FLOATS];
        remat_status status = remat_checkpointer_recompute(cp, i, layers, LAYERS, multiply_add, NULL, activation);
        if (status != REMAT_OK)
            return status;
        bool same = memcmp(activation, all[i], sizeof activation) == 0;
        const char *how = remat_checkpointer_has(cp, i, NULL) ? "kept" : "recomputed";
        printf("layer %2zu  %-10s  %9.6f ... %9.6f  %s\n", i, how, (double)activation[0],
               (double)activation[FLOATS - 1], same ? "same bits" : "other bits");
        if (!same)
            return REMAT_CHECK_FAILED;
    }
    return REMAT_OK;
}

int main(void)
{
    const float input[FLOATS] = {1, 2, 3, 4, 5};
    float output[FLOATS], all[LAYERS][FLOATS];
    remat_checkpointer_layer layers[LAYERS];
    for (size_t i = 0; i < LAYERS; i++) {
        layers[i] = (remat_checkpointer_layer){.number = i, .count = FLOATS};
        multiply_add(NULL, i, i ? all[i - 1] : input, FLOATS, all[i], FLOATS);
    }

    remat_context *ctx;
    remat_checkpointer *cp = NULL;
    if (remat_context_create(NULL, &ctx) != REMAT_OK)
        return 1;
    remat_checkpointer_options options;
    remat_checkpointer_options_init(&options);
    options.keep_every_n = 3;
    remat_status status = remat_checkpointer_create(ctx, &options, &cp);
    if (status == REMAT_OK)
        status = remat_checkpointer_forward(cp, layers, LAYERS, input, FLOATS, multiply_add, NULL, output);
    if (status == REMAT_OK)
        printf("kept %llu of %d activations: %llu bytes, %llu bytes avoided\n",
               (unsigned long long)remat_checkpointer_count(cp), LAYERS,
               (unsigned long long)remat_checkpointer_kept_bytes(cp),
               (unsigned long long)remat_checkpointer_avoided_bytes(cp));
    if (status == REMAT_OK)
        status = go_backward(cp, layers, (const float(*)[FLOATS])all);
    if (status != REMAT_OK)
        fprintf(stderr, "%s\n", remat_context_message(ctx));
    remat_checkpointer_destroy(cp);
    remat_context_destroy(ctx);
    return (int)status;
}
