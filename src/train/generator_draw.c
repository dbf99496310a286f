/* Draws a token from logits: divided by the temperature, only the most likely ones, in proportion to their chances. */
#include <math.h>
#include <stdlib.h>

#include <remat/random.h>

#include "train/generator_object.h"

/* Of equal logits, the smaller number is first, so that a text is the same on every machine. */
static bool is_likelier(likely_token a, likely_token b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

static int compare_tokens(const void *a, const void *b)
{
    return is_likelier(*(const likely_token *)a, *(const likely_token *)b) ? -1 : 1;
}

/* Moves the token at `at` down a heap whose root is the least likely. */
static void sift(likely_token *heap, size_t count, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_likelier(heap[child], heap[child + 1]))
            child++;
        if (!is_likelier(heap[at], heap[child]))
            return;
        const likely_token kept = heap[at];
        heap[at] = heap[child];
        heap[child] = kept;
    }
}

/* The `most` likeliest tokens in their order. */
static size_t take_likeliest(const float *logits, size_t count, size_t most, likely_token *to)
{
    for (size_t i = 0; i < count; i++) {
        const likely_token token = {logits[i], (int32_t)i};
        if (i < most) {
            to[i] = token;
            for (size_t at = most / 2; i + 1 == most && at-- > 0;)
                sift(to, most, at);
        } else if (is_likelier(token, to[0])) {
            to[0] = token;
            sift(to, most, 0);
        }
    }
    qsort(to, most, sizeof *to, compare_tokens);
    return most;
}

int32_t generator_draw(const remat_generator *generator, const float *logits, const remat_text_options *options,
                       uint64_t number)
{
    likely_token *likely = generator->likely;
    const size_t all = (size_t)generator->vocabulary;
    size_t count = options->top_k && options->top_k < all ? (size_t)options->top_k : all;
    if (options->temperature <= 0)
        count = 1;
    count = take_likeliest(logits, all, count, likely);
    if (count == 1)
        return likely[0].id;
    double sum = 0, most = (double)likely[0].logit;
    for (size_t i = 0; i < count; i++)
        sum += exp(((double)likely[i].logit - most) / options->temperature);
    double seen = 0;
    for (size_t i = 0; i < count && options->top_p < 1; i++) {
        seen += exp(((double)likely[i].logit - most) / options->temperature);
        if (seen >= options->top_p * sum) {
            count = i + 1;
            sum = seen;
        }
    }
    const remat_random stream = remat_random_stream(options->seed, 0, 0);
    double left = sum * (double)remat_random_uniform(&stream, number);
    for (size_t i = 0; i < count; i++) {
        left -= exp(((double)likely[i].logit - most) / options->temperature);
        if (left < 0)
            return likely[i].id;
    }
    return likely[0].id;
}
