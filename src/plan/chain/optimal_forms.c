/* How an x can be made and held without its layer's saved state being kept for the backward. */
#include "plan/chain/optimal_model.h"

#include "base/alloc.h"

#include <string.h>

static unsigned floor_log2(size_t value)
{
    unsigned log = 0;
    while (value >>= 1)
        log++;
    return log;
}

static optimal_form plain_form(const remat_layer *layer)
{
    const remat_mode *keep = &layer->modes[0];
    return (optimal_form){layer->output_bytes, layer->output_bytes + keep->forward_workspace_bytes, keep->forward_cost,
                          0, false};
}

static optimal_form saving_form(const remat_layer *layer, const remat_mode *mode, uint32_t q)
{
    uint64_t added = mode->activation_bytes + (mode->holds_output ? 0 : layer->output_bytes);
    return (optimal_form){mode->holds_output ? mode->activation_bytes : layer->output_bytes,
                          added + mode->forward_workspace_bytes, mode->forward_cost, q + 1, mode->holds_output};
}

static bool cheaper(optimal_form a, optimal_form b)
{
    return a.cost != b.cost ? a.cost < b.cost : a.bytes < b.bytes;
}

static bool smaller(optimal_form a, optimal_form b)
{
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.cost < b.cost;
}

/* Row 0: plain, row 1: cheapest, row 2: smallest; ties go to the other measure, then to plain. */
static void fill_forms(const optimal_model *model, optimal_form *forms)
{
    size_t n = model->n;
    for (size_t i = 0; i < n; i++) {
        const remat_layer *layer = &model->chain->layers[i];
        optimal_form plain = plain_form(layer), cheap = plain, small = plain;
        for (uint32_t q = 0; q < model->mode_limit; q++) {
            const remat_mode *mode = optimal_model_mode(model, i, q);
            if (!mode)
                continue;
            optimal_form form = saving_form(layer, mode, q);
            cheap = cheaper(form, cheap) ? form : cheap;
            small = smaller(form, small) ? form : small;
        }
        forms[i] = plain;
        forms[n + i] = cheap;
        forms[2 * n + i] = small;
    }
}

static bool same_rows(const optimal_form *a, const optimal_form *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i].save != b[i].save)
            return false;
    return true;
}

/* Rows that say the same as an earlier one go. */
static uint32_t distinct_rows(optimal_form *forms, size_t n)
{
    uint32_t count = 1;
    for (uint32_t row = 1; row < MOST_FORMS; row++) {
        bool known = false;
        for (uint32_t before = 0; before < count; before++)
            known = known || same_rows(forms + before * n, forms + row * n, n);
        if (known)
            continue;
        memmove(forms + count * n, forms + row * n, n * sizeof *forms);
        count++;
    }
    return count;
}

static size_t level_count(size_t n)
{
    return floor_log2(n + 1) + (size_t)1;
}

static void fill_passes(optimal_model *model, uint32_t f)
{
    size_t n = model->n, levels = level_count(n);
    const optimal_form *forms = model->forms + f * n;
    uint64_t *before = model->forward_before + f * (n + 1), *peaks = model->move_peak + f * levels * n;
    before[0] = 0;
    for (size_t k = 0; k < n; k++) {
        before[k + 1] = before[k] + forms[k].cost;
        peaks[k] = (k > 0 ? forms[k - 1].bytes : 0) + forms[k].step_bytes;
    }
    for (unsigned level = 1; ((size_t)1 << level) <= n; level++) {
        const uint64_t *below = peaks + (size_t)(level - 1) * n;
        uint64_t *row = peaks + (size_t)level * n;
        size_t half = (size_t)1 << (level - 1);
        for (size_t k = 0; k + 2 * half <= n; k++)
            row[k] = below[k] > below[k + half] ? below[k] : below[k + half];
    }
}

remat_status optimal_find_forms(remat_context *context, optimal_model *model)
{
    size_t n = model->n;
    model->forms = remat_alloc(context, MOST_FORMS * n, sizeof *model->forms);
    if (!model->forms)
        return REMAT_NO_MEMORY;
    fill_forms(model, model->forms);
    model->form_limit = distinct_rows(model->forms, n);
    model->forward_before = remat_alloc(context, model->form_limit * (n + 1), sizeof *model->forward_before);
    model->move_peak = remat_alloc(context, model->form_limit * level_count(n) * n, sizeof *model->move_peak);
    if (!model->forward_before || !model->move_peak)
        return REMAT_NO_MEMORY;
    for (uint32_t f = 0; f < model->form_limit; f++)
        fill_passes(model, f);
    return REMAT_OK;
}

uint64_t optimal_model_x(const optimal_model *model, size_t i, uint32_t form)
{
    return model->forms[form * model->n + i - 1].bytes;
}

uint64_t optimal_model_smallest_x(const optimal_model *model, size_t i)
{
    uint64_t least = optimal_model_x(model, i, FORM_PLAIN);
    for (uint32_t f = 1; f < model->form_limit; f++)
        if (optimal_model_x(model, i, f) < least)
            least = optimal_model_x(model, i, f);
    return least;
}

/* The largest of the bytes during forwards from..end-1, from < end, the x each reads included. */
static uint64_t inner_peak(const optimal_model *model, size_t from, size_t end, uint32_t inner)
{
    unsigned level = floor_log2(end - from);
    const uint64_t *row = model->move_peak + (inner * level_count(model->n) + level) * model->n;
    uint64_t a = row[from], b = row[end - ((size_t)1 << level)];
    return a > b ? a : b;
}

optimal_pass optimal_model_pass(const optimal_model *model, size_t i, size_t j, uint32_t last, uint32_t inner)
{
    size_t n = model->n;
    const optimal_form *end = &model->forms[last * n + j - 1];
    const uint64_t *before = model->forward_before + inner * (n + 1);
    optimal_pass pass = {0, 0, before[j - 1] - before[i] + end->cost};
    if (j == i + 1) {
        pass.first = end->step_bytes;
        return pass;
    }
    pass.first = model->forms[inner * n + i].step_bytes;
    pass.rest = model->forms[inner * n + j - 2].bytes + end->step_bytes;
    if (j > i + 2) {
        uint64_t between = inner_peak(model, i + 1, j - 1, inner);
        pass.rest = between > pass.rest ? between : pass.rest;
    }
    return pass;
}

void optimal_free_forms(remat_context *context, optimal_model *model)
{
    size_t n = model->n;
    remat_release(context, model->forms, MOST_FORMS * n, sizeof *model->forms);
    remat_release(context, model->forward_before, model->form_limit * (n + 1), sizeof *model->forward_before);
    remat_release(context, model->move_peak, model->form_limit * level_count(n) * n, sizeof *model->move_peak);
}
