/* Samples that come from no file: random ones, and those of a caller's function. */
#include "data/data_set.h"

#include "base/alloc.h"

#include <remat/random.h>

#include <math.h>
#include <stdio.h>

/* Streams of layers have small numbers; field i of random data draws from this one + i. */
#define RANDOM_STREAM 0xE0000000u

typedef struct made_set {
    data_set set;
    uint64_t seed;
    data_generator generator;
} made_set;

static void close_made(data_set *set)
{
    remat_release(set->context, set, 1, sizeof(made_set));
}

static remat_status open_made(const data_request *request, uint64_t samples, made_set **made)
{
    *made = remat_alloc_zeroed(request->context, 1, sizeof **made);
    if (!*made)
        return REMAT_NO_MEMORY;
    (*made)->set = (data_set){.context = request->context,
                              .needs = request->needs,
                              .samples = samples,
                              .close = close_made,
                              .in_file_order = true};
    return REMAT_OK;
}

/* ---- random ---- */

/* Four normal numbers from four random words, by Box and Muller's transform. Single precision is plenty for made-up
 * data, and a benchmark should not wait for it. */
static void normals(const uint32_t words[4], float out[4])
{
    for (int i = 0; i < 4; i += 2) {
        float radius = sqrtf(-2.0f * logf(((float)(words[i] >> 8) + 1.0f) * 0x1p-24f)), sine, cosine;
        sincosf((float)(2.0 * M_PI) * ((float)(words[i + 1] >> 8) * 0x1p-24f), &sine, &cosine);
        out[i] = radius * cosine;
        out[i + 1] = radius * sine;
    }
}

static void make_field(const made_set *made, const data_field *field, uint32_t number, uint64_t sample, void *to)
{
    remat_random stream = remat_random_stream(made->seed, RANDOM_STREAM + number, 0);
    uint64_t bound = field->bound ? field->bound : 2, blocks = (field->values + 3) / 4;
    for (uint64_t i = 0; i < field->values; i += 4) {
        uint32_t words[4];
        float numbers[4];
        remat_random_block(&stream, sample * blocks + i / 4, words);
        if (!data_field_is_integer(field))
            normals(words, numbers);
        for (uint64_t k = 0; k < 4 && i + k < field->values; k++) {
            if (data_field_is_integer(field))
                ((int32_t *)to)[i + k] = (int32_t)(words[k] * bound >> 32);
            else
                ((float *)to)[i + k] = (float)numbers[k];
        }
    }
}

static remat_status read_random(data_set *set, uint64_t sample, void *const *inputs, void *labels)
{
    const made_set *made = (made_set *)set;
    size_t count = set->needs->input_count;
    for (size_t i = 0; i < count; i++)
        make_field(made, &set->needs->inputs[i], (uint32_t)i, sample, inputs[i]);
    if (labels)
        make_field(made, &set->needs->labels, (uint32_t)count, sample, labels);
    return REMAT_OK;
}

remat_status data_random_open(const data_request *request, data_set **set)
{
    made_set *made;
    REMAT_TRY(open_made(request, request->samples, &made));
    made->set.read = read_random;
    made->set.shared = true;
    made->seed = request->seed;
    *set = &made->set;
    return REMAT_OK;
}

/* ---- generator ---- */

static remat_status check_ids(const data_set *set, const data_field *field, const char *name, uint64_t sample,
                              const int32_t *ids)
{
    size_t bad = data_field_is_integer(field) ? data_first_bad_id(field, ids, field->values) : field->values;
    if (bad == field->values)
        return REMAT_OK;
    char what[128];
    snprintf(what, sizeof what, "the generator's sample %llu: value %zu of %s", (unsigned long long)sample, bad, name);
    return data_fail_id(set->context, NULL, field, what, ids[bad]);
}

static remat_status read_generator(data_set *set, uint64_t sample, void *const *inputs, void *labels)
{
    const made_set *made = (made_set *)set;
    REMAT_TRY(made->generator.fill(made->generator.user, sample, inputs, labels));
    for (size_t i = 0; i < set->needs->input_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "input %zu", i);
        REMAT_TRY(check_ids(set, &set->needs->inputs[i], name, sample, inputs[i]));
    }
    return labels ? check_ids(set, &set->needs->labels, "the labels", sample, labels) : REMAT_OK;
}

remat_status data_generator_open(const data_request *request, data_set **set)
{
    made_set *made;
    REMAT_TRY(open_made(request, request->generator->samples, &made));
    made->set.read = read_generator;
    made->generator = *request->generator;
    *set = &made->set;
    return REMAT_OK;
}
