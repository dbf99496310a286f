/* Samples from text: every byte is a token. All files are read as if they were one. Sample j is the window at j * T, or
 * in training, with random windows, one whose place is drawn. */
#include "data/data_set.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "data/data_file.h"
#include "base/search.h"

#include <remat/random.h>

#include <stdio.h>
#include <string.h>

/* Streams of layers have small numbers; those of windows start here. */
#define WINDOW_STREAM 0xD0000000u

enum { PART_BYTES = 4096, TOKENS = 256 };

typedef struct text_set {
    data_set set;
    uint64_t window; /* tokens of a sample */
    data_file *files;
    uint64_t *starts; /* of each file in the whole */
    size_t file_count;
    uint64_t bytes;
} text_set;

static void close_text(data_set *set)
{
    text_set *text = (text_set *)set;
    for (size_t i = 0; i < text->file_count && text->files; i++)
        data_file_close(&text->files[i]);
    remat_release(set->context, text->files, text->file_count, sizeof *text->files);
    remat_release(set->context, text->starts, text->file_count, sizeof *text->starts);
    remat_release(set->context, text, 1, sizeof *text);
}

/* ---- tokens ---- */

/* The file that byte `at` of the whole lies in; `at` is below bytes. */
static size_t file_of(const text_set *text, uint64_t at)
{
    return REMAT_FIRST(i, 1, text->file_count, text->starts[i] > at) - 1;
}

static remat_status check_tokens(const text_set *text, const data_file *file, uint64_t first,
                                 const unsigned char *tokens, size_t count)
{
    const data_field *fields[] = {&text->set.needs->inputs[0], &text->set.needs->labels};
    for (size_t f = 0; f < 2; f++) {
        if (fields[f]->values == 0 || fields[f]->bound == 0 || fields[f]->bound >= TOKENS)
            continue;
        for (size_t i = 0; i < count; i++) {
            if (tokens[i] < fields[f]->bound)
                continue;
            char what[48];
            snprintf(what, sizeof what, "byte %llu", (unsigned long long)(first + i));
            remat_place place = data_file_place(file);
            return data_fail_id(text->set.context, &place, fields[f], what, tokens[i]);
        }
    }
    return REMAT_OK;
}

/* Tokens from place `at` of the whole on; `to` NULL: they are only checked. */
static remat_status read_tokens(const text_set *text, uint64_t at, uint64_t count, int32_t *to)
{
    unsigned char part[PART_BYTES];
    for (size_t i = file_of(text, at); count; i++) {
        uint64_t within = at - text->starts[i], left = text->files[i].bytes - within;
        for (left = left < count ? left : count; left;) {
            size_t bytes = left < PART_BYTES ? (size_t)left : PART_BYTES;
            REMAT_TRY(data_file_read(&text->files[i], within, part, bytes));
            REMAT_TRY(check_tokens(text, &text->files[i], within, part, bytes));
            for (size_t k = 0; to && k < bytes; k++)
                *to++ = part[k];
            within += bytes;
            at += bytes;
            left -= bytes;
            count -= bytes;
        }
    }
    return REMAT_OK;
}

/* The window that begins at place `at` of the whole. */
static remat_status read_window(const text_set *text, uint64_t at, void *input, void *labels)
{
    REMAT_TRY(read_tokens(text, at, text->window, input));
    if (!labels || text->set.needs->labels.values == 0)
        return REMAT_OK;
    /* All but the last label are inputs already. */
    memcpy(labels, (const int32_t *)input + 1, (size_t)(text->window - 1) * sizeof(int32_t));
    return read_tokens(text, at + text->window, 1, (int32_t *)labels + text->window - 1);
}

static remat_status read_text(data_set *set, uint64_t sample, void *const *inputs, void *labels)
{
    const text_set *text = (text_set *)set;
    return read_window(text, sample * text->window, inputs[0], labels);
}

/* Windows lie anywhere before the samples for validation. */
static remat_status read_drawn(data_set *set, uint64_t sample, const data_draw *draw, void *const *inputs, void *labels)
{
    const text_set *text = (text_set *)set;
    const remat_random stream =
        remat_random_stream(draw->seed, WINDOW_STREAM + (uint32_t)(draw->epoch >> 32), (uint32_t)draw->epoch);
    uint64_t places = (draw->training - 1) * text->window + 1;
    (void)sample;
    return read_window(text, remat_random_below(&stream, draw->position, places), inputs[0], labels);
}

/* ---- opening ---- */

static remat_status check_wants(const data_request *request)
{
    const data_needs *needs = request->needs;
    if (needs->input_count != 1 || !data_field_is_integer(&needs->inputs[0]) || needs->inputs[0].values == 0)
        return remat_fail(request->context, REMAT_INVALID, NULL,
                          "text feeds a model with one input of tokens, which an embedding reads");
    if (needs->labels.values &&
        (!data_field_is_integer(&needs->labels) || needs->labels.values != needs->inputs[0].values))
        return remat_fail(
            request->context, REMAT_INVALID, NULL,
            "text gives the next token of each of the %llu tokens as labels; the loss takes %llu%s values, "
            "it must be a cross entropy at every token",
            (unsigned long long)needs->inputs[0].values, (unsigned long long)needs->labels.values,
            data_field_is_integer(&needs->labels) ? "" : " real");
    if (request->inputs)
        return REMAT_OK;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "inputs";
    return remat_fail(request->context, REMAT_INVALID, &place,
                      "name the text files, with commas between, or a pattern such as *.txt");
}

static remat_status open_files(text_set *text, const data_request *request, const name_list *paths)
{
    remat_context *context = request->context;
    text->file_count = paths->count;
    text->files = remat_alloc_zeroed(context, text->file_count, sizeof *text->files);
    text->starts = remat_alloc(context, text->file_count, sizeof *text->starts);
    if (!text->files || !text->starts)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < text->file_count; i++) {
        REMAT_TRY(data_file_open(context, paths->names[i], DATA_HELD_BYTES, &text->files[i]));
        text->starts[i] = text->bytes;
        if (!remat_add(&text->bytes, text->files[i].bytes))
            return remat_fail(context, REMAT_INVALID, NULL, "the text has 2^63 bytes or more");
    }
    return REMAT_OK;
}

static remat_status find_files(text_set *text, const data_request *request)
{
    name_list paths = {0};
    remat_status status = data_paths_find(request->context, request->folder, request->inputs, &paths);
    if (status == REMAT_OK)
        status = open_files(text, request, &paths);
    name_list_end(request->context, &paths);
    return status;
}

static remat_status open_text(text_set *text, const data_request *request)
{
    REMAT_TRY(check_wants(request));
    REMAT_TRY(find_files(text, request));
    text->window = request->needs->inputs[0].values;
    /* The last token of the whole is only a label. */
    text->set.samples = text->bytes ? (text->bytes - 1) / text->window : 0;
    remat_place place = data_file_place(&text->files[0]);
    if (text->set.samples == 0)
        return remat_fail(request->context, REMAT_BAD_INPUT, &place,
                          "%llu bytes of text; a sample needs %llu and the one that follows",
                          (unsigned long long)text->bytes, (unsigned long long)text->window);
    return read_tokens(text, 0, text->bytes, NULL);
}

remat_status data_text_open(const data_request *request, data_set **set)
{
    text_set *text = remat_alloc_zeroed(request->context, 1, sizeof *text);
    if (!text)
        return REMAT_NO_MEMORY;
    text->set = (data_set){.context = request->context,
                           .needs = request->needs,
                           .read = read_text,
                           .close = close_text,
                           .in_file_order = true,
                           .read_drawn = request->settings->windows == WINDOWS_RANDOM ? read_drawn : NULL};
    remat_status status = open_text(text, request);
    if (status == REMAT_OK)
        *set = &text->set;
    else
        close_text(&text->set);
    return status;
}
