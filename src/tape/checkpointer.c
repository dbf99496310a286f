#include <remat/checkpointer.h>

#include "base/alloc.h"
#include "base/dtype_traits.h"
#include "base/options.h"
#include "graph/index_set.h"
#include "base/half.h"
#include "base/search.h"

#include <string.h>

/* One activation, as it is stored. */
typedef struct kept_activation {
    uint64_t number;
    size_t count;
    remat_precision precision; /* fp32 also where it was too large for 16 bits */
    void *data;
} kept_activation;

struct remat_checkpointer {
    remat_context *context;
    remat_checkpointer_options options;
    const half_kernels *kernels;
    kept_activation *kept; /* by rising number */
    size_t kept_count, kept_capacity;
    bool has_input;
    float *input;
    size_t input_count;
    uint64_t kept_bytes;
    uint64_t halved_bytes; /* what 16 bits saved of the kept ones */
    uint64_t passed_bytes; /* of activations that the forward did not keep */
    uint64_t missed, overflows, kept_full;
};

static remat_place at_layer(uint64_t number)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.layer = number;
    return place;
}

static void copy_floats(float *to, const float *from, size_t count)
{
    if (count)
        memcpy(to, from, count * sizeof *to);
}

/* ---- making and unmaking ---- */

void remat_checkpointer_options_init_sized(remat_checkpointer_options *options, size_t size)
{
    const remat_checkpointer_options defaults = {
        .keep_every_n = 4, .max_kept = 64, .precision = REMAT_FP32, .overflow = REMAT_OVERFLOW_ERROR};
    remat_options_give(options, size, &defaults, sizeof defaults);
}

static remat_status check_options(remat_context *context, const remat_checkpointer_options *options)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "precision";
    if (options->precision != REMAT_FP32 && options->precision != REMAT_FP16 && options->precision != REMAT_BF16)
        return remat_fail(context, REMAT_INVALID, &place, "%d is not one of REMAT_FP32, REMAT_FP16 and REMAT_BF16",
                          (int)options->precision);
    place.field = "overflow";
    if (options->overflow != REMAT_OVERFLOW_ERROR && options->overflow != REMAT_OVERFLOW_SATURATE &&
        options->overflow != REMAT_OVERFLOW_KEEP_FULL)
        return remat_fail(context, REMAT_INVALID, &place, "%d is not one of the values of remat_overflow",
                          (int)options->overflow);
    return REMAT_OK;
}

remat_status remat_checkpointer_create(remat_context *context, const remat_checkpointer_options *options,
                                       remat_checkpointer **checkpointer)
{
    *checkpointer = NULL;
    remat_checkpointer_options chosen;
    remat_checkpointer_options_init(&chosen);
    REMAT_TRY(remat_options_copy(context, &chosen, sizeof chosen, options, "remat_checkpointer_options_init"));
    REMAT_TRY(check_options(context, &chosen));
    remat_checkpointer *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->options = chosen;
    made->kernels = half_kernels_choose();
    *checkpointer = made;
    return REMAT_OK;
}

static uint64_t stored_bytes(const kept_activation *kept)
{
    return dtype_bytes(kept->precision, kept->count);
}

static void release_activation(remat_checkpointer *cp, kept_activation *kept)
{
    cp->kept_bytes -= stored_bytes(kept);
    cp->halved_bytes -= dtype_bytes(REMAT_FP32, kept->count) - stored_bytes(kept);
    remat_release(cp->context, kept->data, kept->count, dtype_bytes(kept->precision, 1));
}

void remat_checkpointer_clear(remat_checkpointer *cp)
{
    for (size_t i = 0; i < cp->kept_count; i++)
        release_activation(cp, &cp->kept[i]);
    remat_release(cp->context, cp->input, cp->input_count, sizeof *cp->input);
    cp->input = NULL;
    cp->has_input = false;
    cp->kept_count = cp->input_count = 0;
    cp->passed_bytes = cp->missed = cp->overflows = cp->kept_full = 0;
}

void remat_checkpointer_destroy(remat_checkpointer *cp)
{
    if (!cp)
        return;
    remat_checkpointer_clear(cp);
    remat_release(cp->context, cp->kept, cp->kept_capacity, sizeof *cp->kept);
    remat_release(cp->context, cp, 1, sizeof *cp);
}

/* ---- single activations ---- */

/* Where the layer is among the kept ones, or where it would have to be put. */
static size_t position_of(const remat_checkpointer *cp, uint64_t number)
{
    return REMAT_FIRST(i, 0, cp->kept_count, cp->kept[i].number >= number);
}

static const kept_activation *find(const remat_checkpointer *cp, uint64_t number)
{
    size_t position = position_of(cp, number);
    return position < cp->kept_count && cp->kept[position].number == number ? &cp->kept[position] : NULL;
}

static remat_status fail_overflow(const remat_checkpointer *cp, const kept_activation *kept, const float *activation,
                                  uint64_t overflows)
{
    remat_place place = at_layer(kept->number);
    size_t first = half_first_overflow(kept->precision, activation, kept->count);
    return remat_fail(cp->context, REMAT_CHECK_FAILED, &place,
                      "%llu of %zu numbers are too large for %s, the first at position %zu: %g; another precision, or "
                      "another overflow policy, would keep them",
                      (unsigned long long)overflows, kept->count, remat_precision_name(kept->precision), first,
                      (double)activation[first]);
}

/* A copy in `kept->precision`; *overflows is how many numbers did not fit. On failure there is no copy. */
static remat_status copy_activation(const remat_checkpointer *cp, const float *activation, kept_activation *kept,
                                    uint64_t *overflows)
{
    *overflows = 0;
    kept->data = remat_alloc(cp->context, kept->count, dtype_bytes(kept->precision, 1));
    if (!kept->data)
        return REMAT_NO_MEMORY;
    if (kept->precision == REMAT_FP32)
        copy_floats(kept->data, activation, kept->count);
    else
        *overflows = half_pack(cp->kernels, kept->precision, cp->options.overflow == REMAT_OVERFLOW_SATURATE,
                               activation, kept->data, kept->count);
    return REMAT_OK;
}

/* The same with the policy for overflows. */
static remat_status store_activation(remat_checkpointer *cp, const float *activation, kept_activation *kept)
{
    uint64_t overflows, none;
    REMAT_TRY(copy_activation(cp, activation, kept, &overflows));
    cp->overflows += overflows;
    if (overflows == 0 || cp->options.overflow == REMAT_OVERFLOW_SATURATE)
        return REMAT_OK;
    remat_release(cp->context, kept->data, kept->count, dtype_bytes(kept->precision, 1));
    if (cp->options.overflow == REMAT_OVERFLOW_ERROR)
        return fail_overflow(cp, kept, activation, overflows);
    kept->precision = REMAT_FP32;
    REMAT_TRY(copy_activation(cp, activation, kept, &none));
    cp->kept_full++;
    return REMAT_OK;
}

remat_status remat_checkpointer_save(remat_checkpointer *cp, uint64_t number, const float *activation, size_t count)
{
    remat_place place = at_layer(number);
    size_t position = position_of(cp, number);
    bool replaces = position < cp->kept_count && cp->kept[position].number == number;
    if (!replaces && cp->kept_count >= cp->options.max_kept)
        return remat_fail(cp->context, REMAT_INFEASIBLE, &place,
                          "cannot be kept: %zu activations are, and max_kept is %llu", cp->kept_count,
                          (unsigned long long)cp->options.max_kept);
    if (!replaces)
        REMAT_TRY(
            remat_grow(cp->context, (void **)&cp->kept, &cp->kept_capacity, cp->kept_count + 1, sizeof *cp->kept));
    kept_activation kept = {number, count, cp->options.precision, NULL};
    REMAT_TRY(store_activation(cp, activation, &kept));
    kept_activation *place_for_it = &cp->kept[position];
    if (replaces) {
        release_activation(cp, place_for_it);
    } else {
        memmove(place_for_it + 1, place_for_it, (cp->kept_count - position) * sizeof *place_for_it);
        cp->kept_count++;
    }
    *place_for_it = kept;
    cp->kept_bytes += stored_bytes(&kept);
    cp->halved_bytes += dtype_bytes(REMAT_FP32, count) - stored_bytes(&kept);
    return REMAT_OK;
}

static void read_activation(const remat_checkpointer *cp, const kept_activation *kept, float *activation)
{
    if (kept->precision == REMAT_FP32)
        copy_floats(activation, kept->data, kept->count);
    else
        half_unpack(cp->kernels, kept->precision, kept->data, activation, kept->count);
}

static remat_status check_count(const remat_checkpointer *cp, const kept_activation *kept, size_t count)
{
    remat_place place = at_layer(kept->number);
    if (kept->count == count)
        return REMAT_OK;
    return remat_fail(cp->context, REMAT_INVALID, &place, "was kept with %zu floats, not with %zu", kept->count, count);
}

remat_status remat_checkpointer_get(const remat_checkpointer *cp, uint64_t number, float *activation, size_t count)
{
    const kept_activation *kept = find(cp, number);
    remat_place place = at_layer(number);
    if (!kept)
        return remat_fail(cp->context, REMAT_INVALID, &place, "is not kept");
    REMAT_TRY(check_count(cp, kept, count));
    read_activation(cp, kept, activation);
    return REMAT_OK;
}

bool remat_checkpointer_has(const remat_checkpointer *cp, uint64_t number, size_t *count)
{
    const kept_activation *kept = find(cp, number);
    if (kept && count)
        *count = kept->count;
    return kept != NULL;
}

bool remat_checkpointer_keeps(const remat_checkpointer *cp, uint64_t number)
{
    return cp->options.keep_every_n != 0 && number % cp->options.keep_every_n == 0;
}

/* ---- running layers ---- */

/* A run over layers, one after the other. Outputs alternate between two buffers; the last one is the caller's.
 *
 *     start -> layer 0 -> scratch[0] -> layer 1 -> scratch[1] -> layer 2 -> scratch[0] ... -> output */
typedef struct layer_run {
    const remat_checkpointer *cp;
    remat_checkpointer *keeper; /* keeps what the rule selects; NULL: nothing is kept */
    const remat_checkpointer_layer *layers;
    size_t layer_count;
    const float *start;
    size_t start_count;
    remat_checkpointer_fn forward;
    void *user;
    float *output;
} layer_run;

static remat_status keep_by_rule(remat_checkpointer *cp, const remat_checkpointer_layer *layer, const float *activation)
{
    bool selected = remat_checkpointer_keeps(cp, layer->number);
    if (selected && cp->kept_count < cp->options.max_kept)
        return remat_checkpointer_save(cp, layer->number, activation, layer->count);
    cp->missed += selected;
    cp->passed_bytes += dtype_bytes(REMAT_FP32, layer->count);
    return REMAT_OK;
}

static remat_status run_between(const layer_run *run, float *const scratch[2])
{
    const float *input = run->start;
    size_t input_count = run->start_count;
    for (size_t i = 0; i < run->layer_count; i++) {
        const remat_checkpointer_layer *layer = &run->layers[i];
        float *output = i + 1 == run->layer_count ? run->output : scratch[i % 2];
        remat_status status = run->forward(run->user, layer->number, input, input_count, output, layer->count);
        if (status != REMAT_OK) {
            remat_place place = at_layer(layer->number);
            return remat_fail(run->cp->context, status, &place, "the forward callback returned %d", (int)status);
        }
        if (run->keeper)
            REMAT_TRY(keep_by_rule(run->keeper, layer, output));
        input = output;
        input_count = layer->count;
    }
    return REMAT_OK;
}

static remat_status run_layers(const layer_run *run)
{
    remat_context *context = run->cp->context;
    float *scratch[2] = {NULL, NULL};
    size_t most[2] = {0, 0};
    remat_status status = REMAT_NO_MEMORY;
    for (size_t i = 0; i + 1 < run->layer_count; i++)
        most[i % 2] = run->layers[i].count > most[i % 2] ? run->layers[i].count : most[i % 2];
    for (size_t i = 0; i < 2; i++)
        if (run->layer_count > i + 1 && !(scratch[i] = remat_alloc(context, most[i], sizeof(float))))
            goto cleanup;
    status = run_between(run, scratch);
cleanup:
    for (size_t i = 0; i < 2; i++)
        remat_release(context, scratch[i], most[i], sizeof(float));
    return status;
}

static remat_status check_list(const remat_checkpointer *cp, const remat_checkpointer_layer *layers, size_t layer_count)
{
    index_set *numbers;
    REMAT_TRY(index_set_create(cp->context, &numbers));
    remat_status status = REMAT_OK;
    for (size_t i = 0; i < layer_count && status == REMAT_OK; i++) {
        bool known;
        remat_place place = at_layer(layers[i].number);
        status = index_set_add(numbers, layers[i].number, &known);
        if (status == REMAT_OK && known)
            status =
                remat_fail(cp->context, REMAT_INVALID, &place, "stands twice in the list, again at position %zu", i);
    }
    index_set_destroy(numbers);
    return status;
}

static remat_status keep_input(remat_checkpointer *cp, const float *input, size_t count)
{
    cp->input = remat_alloc(cp->context, count, sizeof *input);
    if (!cp->input)
        return REMAT_NO_MEMORY;
    copy_floats(cp->input, input, count);
    cp->input_count = count;
    cp->has_input = true;
    return REMAT_OK;
}

remat_status remat_checkpointer_forward(remat_checkpointer *cp, const remat_checkpointer_layer *layers,
                                        size_t layer_count, const float *input, size_t input_count,
                                        remat_checkpointer_fn forward, void *user, float *output)
{
    layer_run run = {cp, cp, layers, layer_count, input, input_count, forward, user, output};
    remat_checkpointer_clear(cp);
    remat_status status = check_list(cp, layers, layer_count);
    if (status == REMAT_OK)
        status = keep_input(cp, input, input_count);
    if (status == REMAT_OK && layer_count == 0)
        copy_floats(output, input, input_count);
    else if (status == REMAT_OK)
        status = run_layers(&run);
    if (status != REMAT_OK)
        remat_checkpointer_clear(cp);
    return status;
}

/* Runs layers first..target of the list again, from the activation before them. */
static remat_status rerun_from(const layer_run *run, const kept_activation *from)
{
    layer_run rerun = *run;
    const remat_checkpointer *cp = run->cp;
    rerun.start = from ? from->data : cp->input;
    rerun.start_count = from ? from->count : cp->input_count;
    if (!from || from->precision == REMAT_FP32)
        return run_layers(&rerun);
    float *start = remat_alloc(cp->context, from->count, sizeof *start);
    if (!start)
        return REMAT_NO_MEMORY;
    read_activation(cp, from, start);
    rerun.start = start;
    remat_status status = run_layers(&rerun);
    remat_release(cp->context, start, from->count, sizeof *start);
    return status;
}

remat_status remat_checkpointer_recompute(const remat_checkpointer *cp, uint64_t number,
                                          const remat_checkpointer_layer *layers, size_t layer_count,
                                          remat_checkpointer_fn forward, void *user, float *output)
{
    remat_place place = at_layer(number);
    size_t target = 0, first;
    while (target < layer_count && layers[target].number != number)
        target++;
    if (target == layer_count)
        return remat_fail(cp->context, REMAT_INVALID, &place, "is not in the list of %zu layers", layer_count);
    const kept_activation *from = find(cp, number);
    if (from)
        return remat_checkpointer_get(cp, number, output, layers[target].count);
    for (first = target; first > 0 && !from; first--)
        from = find(cp, layers[first - 1].number);
    first += from ? 1 : 0;
    if (from)
        REMAT_TRY(check_count(cp, from, layers[first - 1].count));
    else if (!cp->has_input)
        return remat_fail(cp->context, REMAT_INVALID, &place,
                          "cannot be computed again: no layer before it is kept, and no forward has left its input");
    layer_run run = {cp, NULL, layers + first, target - first + 1, NULL, 0, forward, user, output};
    return rerun_from(&run, from);
}

/* ---- figures ---- */

uint64_t remat_checkpointer_count(const remat_checkpointer *cp)
{
    return cp->kept_count;
}

uint64_t remat_checkpointer_kept_bytes(const remat_checkpointer *cp)
{
    return cp->kept_bytes;
}

uint64_t remat_checkpointer_input_bytes(const remat_checkpointer *cp)
{
    return dtype_bytes(REMAT_FP32, cp->input_count);
}

uint64_t remat_checkpointer_avoided_bytes(const remat_checkpointer *cp)
{
    return cp->passed_bytes + cp->halved_bytes;
}

uint64_t remat_checkpointer_missed(const remat_checkpointer *cp)
{
    return cp->missed;
}

void remat_checkpointer_get_counters_sized(const remat_checkpointer *cp, remat_store_counters *counters,
                                           size_t counters_size)
{
    const remat_store_counters found = {.overflows = cp->overflows, .kept_full = cp->kept_full, .kept_up = true};
    remat_struct_give(counters, counters_size, &found, sizeof found);
}

const remat_checkpointer_options *remat_checkpointer_get_options(const remat_checkpointer *cp)
{
    return &cp->options;
}
