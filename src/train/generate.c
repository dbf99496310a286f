/* Generates text with a model of bytes: the last T bytes are the input, and the logits of the last position give the
 * next byte. */
#include <math.h>
#include <string.h>

#include <remat/random.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "data/data_needs.h"
#include "data/data_set.h"
#include "train/predictor_object.h"

void remat_generate_options_init_sized(remat_generate_options *options, size_t size)
{
    const remat_generate_options defaults = {.count = 200, .temperature = 0.8};
    remat_options_give(options, size, &defaults, sizeof defaults);
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

/* T tokens in, of which a byte can be any, and a row of logits for each of them out of the layer that is read. */
static remat_status check_model(const remat_predictor *predictor, uint64_t *steps)
{
    const data_needs needs = network_data_needs(predictor->network);
    const data_field *input = &needs.inputs[0];
    if (needs.input_count != 1)
        return remat_fail(predictor->context, REMAT_INVALID, NULL,
                          "this is not a model of bytes: it needs one input, not %zu", needs.input_count);
    if (!data_field_is_integer(input) || input->bound < 256)
        return remat_fail(
            predictor->context, REMAT_INVALID, NULL,
            "this is not a model of bytes: its input must be read by an embedding of at least 256 tokens, not %llu",
            (unsigned long long)(data_field_is_integer(input) ? input->bound : 0));
    uint32_t layer = 0;
    executor_result(predictor->executor, 0, &layer);
    const layer_node *read = &predictor->network->layers[layer].node;
    *steps = input->values;
    if (read->output.c != 1 || read->output.h != *steps || read->output.w < 256)
        return remat_fail(
            predictor->context, REMAT_INVALID, NULL,
            "this is not a model of bytes: for %llu bytes in it needs 1:%llu:256 logits or wider ones, not "
            "%llu:%llu:%llu of layer '%.80s'",
            (unsigned long long)*steps, (unsigned long long)*steps, (unsigned long long)read->output.c,
            (unsigned long long)read->output.h, (unsigned long long)read->output.w, read->name);
    return REMAT_OK;
}

remat_status remat_predictor_generate(remat_predictor *predictor, const remat_generate_options *options,
                                      void (*emit)(void *user, unsigned char byte), void *user)
{
    remat_generate_options wanted;
    remat_generate_options_init(&wanted);
    REMAT_TRY(remat_options_copy(predictor->context, &wanted, sizeof wanted, options, "remat_generate_options_init"));
    uint64_t steps = 0;
    REMAT_TRY(check_model(predictor, &steps));
    const char *prompt = wanted.prompt && wanted.prompt[0] ? wanted.prompt : "\n";
    size_t length = strlen(prompt), kept = length < steps ? length : (size_t)steps;
    /* Only the first sample of the batch holds the text and is read; the others stay zeros. */
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
