/* Samples for fine-tuning: a file of JSON lines, which a tokenizer turns into rows of tokens (remat/tokenizer.h). A model with a
 * second input, of positions, gets several samples in a row; otherwise every sample has a row of its own. */
#include "data/data_set.h"

#include "base/alloc.h"

#include <remat/tokenizer.h>

#include <stdio.h>
#include <string.h>

typedef struct jsonl_set {
    data_set set;
    remat_samples *samples;
} jsonl_set;

static void close_jsonl(data_set *set)
{
    jsonl_set *lines = (jsonl_set *)set;
    remat_samples_destroy(lines->samples);
    remat_release(set->context, lines, 1, sizeof *lines);
}

static remat_status read_row(data_set *set, uint64_t sample, void *const *inputs, void *labels)
{
    const jsonl_set *lines = (jsonl_set *)set;
    const size_t bytes = (size_t)set->needs->inputs[0].values * sizeof(int32_t);
    remat_samples_row row;
    REMAT_TRY(remat_samples_row_get(lines->samples, sample, &row));
    memcpy(inputs[0], row.ids, bytes);
    if (set->needs->input_count > 1)
        memcpy(inputs[1], row.positions, bytes);
    if (labels && set->needs->labels.values)
        memcpy(labels, row.labels, bytes);
    return REMAT_OK;
}

/* ---- opening ---- */

static remat_status check_needs(const data_request *request)
{
    const data_needs *needs = request->needs;
    const data_field *tokens = &needs->inputs[0], *positions = &needs->inputs[1], *labels = &needs->labels;
    const bool has_tokens = needs->input_count > 0 && needs->input_count < 3 && data_field_is_integer(tokens);
    const bool has_positions =
        needs->input_count == 1 || (data_field_is_integer(positions) && positions->values == tokens->values);
    const bool has_labels = labels->values == 0 || (data_field_is_integer(labels) && labels->values == tokens->values);
    if (has_tokens && has_positions && has_labels)
        return REMAT_OK;
    return remat_fail(
        request->context, REMAT_INVALID, NULL,
        "JSON lines feed a model with an input of tokens, a second one of positions if samples share rows, and a "
        "cross entropy at every token");
}

static remat_status load_tokenizer(const data_request *request, remat_tokenizer **tokenizer)
{
    const char *path = request->settings->tokenizer;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "tokenizer";
    if (!path)
        return remat_fail(request->context, REMAT_INVALID, &place,
                          "JSON lines need a tokenizer: name a tokenizer.json, or the folder that has it");
    char *whole = data_path_at(request->context, request->settings->folder, path, 0);
    if (!whole)
        return REMAT_NO_MEMORY;
    remat_status status = remat_tokenizer_load(request->context, whole, tokenizer);
    remat_text_release(request->context, whole);
    return status;
}

/* The tokenizer of another model has tokens that this one does not know. */
static remat_status check_tokens(const jsonl_set *lines, const data_request *request, const remat_tokenizer *tokenizer)
{
    const data_field *tokens = &request->needs->inputs[0];
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = request->settings->tokenizer;
    if (tokens->bound == 0 || remat_tokenizer_size(tokenizer) <= tokens->bound)
        return REMAT_OK;
    for (uint64_t r = 0; r < lines->set.samples; r++) {
        remat_samples_row row;
        REMAT_TRY(remat_samples_row_get(lines->samples, r, &row));
        for (uint64_t i = 0; i < tokens->values; i++) {
            const int32_t id = row.ids[i] > row.labels[i] ? row.ids[i] : row.labels[i];
            if ((uint64_t)id >= tokens->bound)
                return remat_fail(
                    request->context, REMAT_BAD_INPUT, &place,
                    "its token %d is in the samples, and the model has tokens from 0 to %llu; it is the tokenizer "
                    "of another model",
                    (int)id, (unsigned long long)tokens->bound - 1);
        }
    }
    return REMAT_OK;
}

/* What is not learned is said. */
static void warn(const jsonl_set *lines, const char *path, uint64_t length)
{
    remat_samples_figures figures;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    remat_samples_figures_get(lines->samples, &figures);
    if (figures.truncated)
        remat_warn(lines->set.context, &place,
                   "%llu of %llu samples are longer than %llu tokens; the rest of each is not read",
                   (unsigned long long)figures.truncated, (unsigned long long)figures.samples,
                   (unsigned long long)length + 1);
    if (figures.dropped)
        remat_warn(lines->set.context, &place, "%llu of %llu samples have nothing to learn in their first %llu tokens",
                   (unsigned long long)figures.dropped, (unsigned long long)figures.samples,
                   (unsigned long long)length + 1);
}

static remat_status load_samples(jsonl_set *lines, const data_request *request, remat_tokenizer *tokenizer)
{
    remat_samples_options options;
    remat_samples_figures figures;
    char *path = data_path_at(request->context, request->folder, request->inputs, 0);
    if (!path)
        return REMAT_NO_MEMORY;
    remat_samples_options_init(&options);
    options.length = request->needs->inputs[0].values;
    options.pack = request->needs->input_count > 1;
    remat_status status = remat_samples_load(tokenizer, path, &options, &lines->samples);
    if (status == REMAT_OK) {
        remat_samples_figures_get(lines->samples, &figures);
        lines->set.samples = figures.rows;
        status = check_tokens(lines, request, tokenizer);
    }
    if (status == REMAT_OK)
        warn(lines, path, options.length);
    remat_text_release(request->context, path);
    return status;
}

static remat_status open_jsonl(jsonl_set *lines, const data_request *request)
{
    remat_tokenizer *tokenizer = NULL;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "inputs";
    REMAT_TRY(check_needs(request));
    if (!request->inputs || data_path_count(request->inputs) != 1)
        return remat_fail(request->context, REMAT_INVALID, &place, "name one file of JSON lines: --data FILE.jsonl");
    remat_status status = load_tokenizer(request, &tokenizer);
    if (status == REMAT_OK)
        status = load_samples(lines, request, tokenizer);
    remat_tokenizer_destroy(tokenizer);
    return status;
}

remat_status data_jsonl_open(const data_request *request, data_set **set)
{
    jsonl_set *lines = remat_alloc_zeroed(request->context, 1, sizeof *lines);
    if (!lines)
        return REMAT_NO_MEMORY;
    lines->set =
        (data_set){.context = request->context, .needs = request->needs, .read = read_row, .close = close_jsonl};
    lines->set.shared = lines->set.in_file_order = true;
    remat_status status = open_jsonl(lines, request);
    if (status == REMAT_OK)
        *set = &lines->set;
    else
        close_jsonl(&lines->set);
    return status;
}
