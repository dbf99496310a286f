/* Text from a model of bytes: the last T bytes go in, the logits behind the last of them say what may come next. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "train/predictor_object.h"

void remat_generate_options_init(remat_generate_options *options)
{
    *options = (remat_generate_options){.struct_size = sizeof *options, .count = 200, .temperature = 0.8};
}

/* Draws from softmax(logits / temperature) by walking the cumulated weights. */
static unsigned char draw(const float *logits, size_t count, double temperature, const remat_random *stream,
                          uint64_t position)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (logits[i] > logits[best])
            best = i;
    if (temperature <= 0)
        return (unsigned char)best;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += exp(((double)logits[i] - (double)logits[best]) / temperature);
    double left = sum * (double)remat_random_uniform(stream, position);
    for (size_t i = 0; i < count; i++) {
        left -= exp(((double)logits[i] - (double)logits[best]) / temperature);
        if (left < 0)
            return (unsigned char)i;
    }
    return (unsigned char)best;
}

static remat_status check_model(const remat_predictor *predictor, uint64_t *steps)
{
    const remat_network *network = predictor->network;
    const layer_node *input = NULL;
    for (size_t n = 0; n < network->layer_count && !input; n++)
        if (network->layers[n].node.input_count == 0)
            input = &network->layers[n].node;
    *steps = input ? layer_values(input->output) : 0;
    const layer_node *output = &network->layers[network->layer_count - 1].node;
    if (predictor->input_count != 1 || output->output.h != *steps || output->output.w < 256 || *steps == 0)
        return remat_fail(predictor->context, REMAT_INVALID, NULL,
                          "this is not a model of bytes: it needs one input of T bytes and T x 256 or more logits, not "
                          "%llu values in and %llu x %llu out",
                          (unsigned long long)*steps, (unsigned long long)output->output.h,
                          (unsigned long long)output->output.w);
    return REMAT_OK;
}

remat_status remat_predictor_generate(remat_predictor *predictor, const remat_generate_options *options,
                                      void (*emit)(void *user, unsigned char byte), void *user)
{
    remat_generate_options wanted;
    remat_generate_options_init(&wanted);
    if (options)
        REMAT_TRY(
            remat_options_copy(predictor->context, &wanted, sizeof wanted, options, "remat_generate_options_init"));
    uint64_t steps;
    REMAT_TRY(check_model(predictor, &steps));
    const char *prompt = wanted.prompt && wanted.prompt[0] ? wanted.prompt : "\n";
    size_t length = strlen(prompt), kept = length < steps ? length : (size_t)steps;
    /* All rows of the batch are the first one's; only that is read. */
    int32_t *window =
        remat_alloc_zeroed(predictor->context, (size_t)(steps * predictor->network->batch), sizeof *window);
    if (!window)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < kept; i++)
        window[i] = (unsigned char)prompt[length - kept + i];
    remat_random stream = remat_random_stream(wanted.seed, 0, 0);
    remat_status status = REMAT_OK;
    for (uint64_t i = 0; i < wanted.count && status == REMAT_OK; i++) {
        remat_prediction prediction;
        const void *inputs[1] = {window};
        status = remat_predictor_run(predictor, inputs, &prediction);
        if (status != REMAT_OK)
            break;
        unsigned char byte =
            draw(prediction.values + (kept - 1) * prediction.shape[2], 256, wanted.temperature, &stream, i);
        emit(user, byte);
        if (kept == steps)
            memmove(window, window + 1, (size_t)(steps - 1) * sizeof *window);
        else
            kept++;
        window[kept - 1] = byte;
    }
    remat_release(predictor->context, window, (size_t)(steps * predictor->network->batch), sizeof *window);
    return status;
}
