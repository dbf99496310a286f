/* Reads JSON lines, encodes every sample, and lays them in rows. */
#include "data/tokenizer/sample_line.h"
#include "data/tokenizer/tokenizer_config.h"
#include "data/tokenizer/tokenizer_object.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/input.h"
#include "base/options.h"

#include <errno.h>
#include <string.h>

enum { ARRAYS = 4, NOT_LEARNED = -1, MOST_LENGTH = 1 << 24 };
#define MOST_LINE ((size_t)64 << 20)

struct remat_samples {
    remat_context *context;
    remat_samples_options options;
    remat_samples_figures figures;
    int32_t *arrays[ARRAYS]; /* ids, labels, positions and segments of all rows */
    size_t capacities[ARRAYS];
    uint64_t used;   /* tokens of the last row */
    int32_t segment; /* samples of the last row */
};

void remat_samples_options_init_sized(remat_samples_options *options, size_t size)
{
    const remat_samples_options defaults = {.length = 256, .pack = 1};
    remat_options_give(options, size, &defaults, sizeof defaults);
}

/* The part of a text that is learned. */
typedef struct learned_part {
    size_t begin, end;
} learned_part;

typedef struct samples_reading {
    remat_context *context;
    remat_tokenizer *tokenizer;
    remat_samples *samples;
    const char *path;
    uint64_t line;
    tokenizer_config config;
    chat_template *template;
    int32_t end_token; /* -1: none */
    char *text, *line_text;
    size_t text_capacity, line_capacity;
    learned_part *learned;
    size_t learned_count, learned_capacity;
    int32_t *ids; /* of one sample */
    bool *is_learned;
    size_t count, id_capacity, learned_id_capacity;
} samples_reading;

static remat_place place_of(const samples_reading *of)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = of->path;
    place.line = of->line;
    return place;
}

/* ---- rows ---- */

static remat_status add_row(remat_samples *to)
{
    uint64_t length = to->options.length, wanted;
    if (!remat_multiply(to->figures.rows + 1, length, &wanted) || wanted > SIZE_MAX / 8)
        return remat_fail(to->context, REMAT_INVALID, NULL, "the samples have too many tokens");
    for (int i = 0; i < ARRAYS; i++) {
        REMAT_TRY(remat_grow(to->context, (void **)&to->arrays[i], &to->capacities[i], (size_t)wanted,
                             sizeof *to->arrays[i]));
        for (uint64_t at = wanted - length; at < wanted; at++)
            to->arrays[i][at] = i % 2 ? -1 : 0; /* labels and segments: none */
    }
    to->figures.rows++;
    to->used = 0;
    to->segment = 0;
    return REMAT_OK;
}

/* Puts a sample of at least two tokens into the last row, or a new one. */
static remat_status put_sample(const samples_reading *of)
{
    remat_samples *to = of->samples;
    uint64_t inputs = of->count - 1, length = to->options.length;
    if (to->figures.rows == 0 || !to->options.pack || inputs > length - to->used)
        REMAT_TRY(add_row(to));
    size_t at = (size_t)((to->figures.rows - 1) * length + to->used);
    for (size_t i = 0; i < inputs; i++) {
        to->arrays[0][at + i] = of->ids[i];
        to->arrays[1][at + i] = of->is_learned[i + 1] ? of->ids[i + 1] : NOT_LEARNED;
        to->arrays[2][at + i] = (int32_t)i;
        to->arrays[3][at + i] = to->segment;
        to->figures.learned += of->is_learned[i + 1];
    }
    to->used += inputs;
    to->segment++;
    to->figures.tokens += inputs;
    return REMAT_OK;
}

static remat_status add_sample(samples_reading *of)
{
    remat_samples *to = of->samples;
    to->figures.samples++;
    if (of->count > to->options.length + 1) {
        of->count = (size_t)to->options.length + 1;
        to->figures.truncated++;
    }
    bool any = false;
    for (size_t i = 1; i < of->count; i++)
        any = any || of->is_learned[i];
    if (any)
        return put_sample(of);
    to->figures.dropped++;
    return REMAT_OK;
}

/* ---- tokens ---- */

static remat_status add_token(samples_reading *of, int32_t id, bool is_learned)
{
    REMAT_TRY(remat_grow(of->context, (void **)&of->ids, &of->id_capacity, of->count + 1, sizeof *of->ids));
    REMAT_TRY(remat_grow(of->context, (void **)&of->is_learned, &of->learned_id_capacity, of->count + 1,
                         sizeof *of->is_learned));
    of->ids[of->count] = id;
    of->is_learned[of->count++] = is_learned;
    return REMAT_OK;
}

/* Encodes a text; tokens that begin in a learned part are learned. */
static remat_status encode(samples_reading *of, const char *text, size_t length, bool special)
{
    const int32_t *ids;
    size_t count, part = 0;
    of->count = 0;
    remat_status status = remat_tokenizer_encode(of->tokenizer, text, length, special, &ids, &count);
    if (status != REMAT_OK)
        return remat_fail_in_file(of->context, of->path, of->line);
    const uint32_t *starts = remat_tokenizer_starts(of->tokenizer);
    for (size_t i = 0; i < count; i++) {
        while (part < of->learned_count && starts[i] >= of->learned[part].end)
            part++;
        REMAT_TRY(add_token(of, ids[i], part < of->learned_count && starts[i] >= of->learned[part].begin));
    }
    return REMAT_OK;
}

static remat_status learn(samples_reading *of, size_t begin, size_t end)
{
    REMAT_TRY(remat_grow(of->context, (void **)&of->learned, &of->learned_capacity, of->learned_count + 1,
                         sizeof *of->learned));
    of->learned[of->learned_count++] = (learned_part){begin, end};
    return REMAT_OK;
}

/* A prompt, which may be empty, and what is learned. */
static remat_status encode_pair(samples_reading *of, const char *prompt, const char *completion)
{
    size_t first = strlen(prompt), second = strlen(completion);
    REMAT_TRY(remat_grow(of->context, (void **)&of->text, &of->text_capacity, first + second + 1, 1));
    memcpy(of->text, prompt, first);
    memcpy(of->text + first, completion, second + 1);
    REMAT_TRY(learn(of, first, SIZE_MAX));
    REMAT_TRY(encode(of, of->text, first + second, true));
    /* A tokenizer may put the end token there itself. */
    if (of->end_token < 0 || (of->count && of->ids[of->count - 1] == of->end_token))
        return REMAT_OK;
    return add_token(of, of->end_token, true);
}

/* ---- messages ---- */

static remat_status render(samples_reading *of, const sample_line *sample, size_t count, bool generation,
                           const char **text, size_t *length)
{
    const chat_values values = {of->config.bos_token, of->config.eos_token, generation};
    remat_status status = chat_template_render(of->template, sample->messages, count, &values, text, length);
    return status == REMAT_OK ? status : remat_fail_in_file(of->context, of->path, of->line);
}

/* Whether the first messages are written as they are in the whole conversation; then *length is their length. */
static remat_status find_beginning(samples_reading *of, const sample_line *sample, size_t count, bool generation,
                                   size_t whole, size_t *length, bool *found)
{
    const char *text;
    REMAT_TRY(render(of, sample, count, generation, &text, length));
    *found = *length <= whole && memcmp(text, of->text, *length) == 0;
    return REMAT_OK;
}

/* The end of what the assistant says, where templates write its last message differently: behind its content and the special
 * token that follows. */
static size_t end_of_content(const samples_reading *of, const char *content, size_t begin, size_t whole)
{
    static const char blanks[] = " \t\r\n";
    content += strspn(content, blanks);
    size_t length = strlen(content);
    while (length && strchr(blanks, content[length - 1]))
        length--;
    const char *found = memmem(of->text + begin, whole - begin, content, length);
    if (!found)
        return begin;
    size_t end = (size_t)(found - of->text) + length;
    token_match match =
        added_tokens_search(&of->tokenizer->added, false, (const unsigned char *)of->text, whole, end, end);
    return match.token && match.start == end ? match.end : end;
}

static remat_status find_turn(samples_reading *of, const sample_line *sample, size_t which, size_t whole)
{
    size_t begin, end;
    bool found;
    remat_place place = place_of(of);
    REMAT_TRY(find_beginning(of, sample, which, true, whole, &begin, &found));
    if (!found)
        return remat_fail(
            of->context, REMAT_BAD_INPUT, &place,
            "the chat template writes what is before message %zu differently when more follows, so that it "
            "cannot be said what is learned",
            which + 1);
    REMAT_TRY(find_beginning(of, sample, which + 1, false, whole, &end, &found));
    if (!found)
        end = end_of_content(of, sample->messages[which].content, begin, whole);
    return learn(of, begin, end);
}

static remat_status need_template(samples_reading *of)
{
    remat_place place = place_of(of);
    if (of->template)
        return REMAT_OK;
    if (!of->config.chat_template)
        return remat_fail(of->context, REMAT_BAD_INPUT, &place,
                          "messages need a chat template, and the tokenizer_config.json beside the tokenizer has none");
    return chat_template_compile(of->context, of->config.chat_template, of->config.template_name, &of->template);
}

static remat_status encode_messages(samples_reading *of, const sample_line *sample)
{
    const char *text;
    size_t whole;
    REMAT_TRY(need_template(of));
    REMAT_TRY(render(of, sample, sample->message_count, false, &text, &whole));
    REMAT_TRY(remat_grow(of->context, (void **)&of->text, &of->text_capacity, whole + 1, 1));
    memcpy(of->text, text, whole);
    for (size_t i = 0; i < sample->message_count; i++)
        if (strcmp(sample->messages[i].role, "assistant") == 0)
            REMAT_TRY(find_turn(of, sample, i, whole));
    return encode(of, of->text, whole, false); /* the template writes special tokens itself */
}

/* ---- the file ---- */

static remat_status read_sample(samples_reading *of, size_t length)
{
    sample_line sample;
    REMAT_TRY(sample_line_read(of->context, of->line_text, length, of->path, of->line, &sample));
    of->learned_count = 0;
    remat_status status = sample.messages ? encode_messages(of, &sample)
                          : sample.text   ? encode_pair(of, "", sample.text)
                                          : encode_pair(of, sample.prompt, sample.completion);
    sample_line_end(of->context, &sample);
    return status == REMAT_OK ? add_sample(of) : status;
}

/* Reads one line without its end. *more false: there was none. */
static remat_status read_line(samples_reading *of, FILE *stream, size_t *length, bool *more)
{
    remat_place place = place_of(of);
    *length = 0;
    int byte;
    while ((byte = getc_unlocked(stream)) != EOF && byte != '\n') {
        if (*length == MOST_LINE)
            return remat_fail(of->context, REMAT_BAD_INPUT, &place, "the line is longer than %zu MiB", MOST_LINE >> 20);
        if (*length + 1 >= of->line_capacity)
            REMAT_TRY(remat_grow(of->context, (void **)&of->line_text, &of->line_capacity, *length + 2, 1));
        of->line_text[(*length)++] = (char)byte;
    }
    *more = byte != EOF || *length > 0;
    if (byte == EOF && ferror(stream))
        return remat_fail(of->context, REMAT_IO, &place, "reading failed: %s", strerror(errno));
    return REMAT_OK;
}

static remat_status read_lines(samples_reading *of, FILE *stream)
{
    static const char mark[] = "\xef\xbb\xbf"; /* some programs put it before UTF-8 */
    bool more = true;
    for (of->line = 1; more; of->line++) {
        size_t length, blank = 0;
        REMAT_TRY(read_line(of, stream, &length, &more));
        if (of->line == 1 && length >= sizeof mark - 1 && memcmp(of->line_text, mark, sizeof mark - 1) == 0)
            memset(of->line_text, ' ', sizeof mark - 1);
        while (blank < length && strchr(" \t\r", of->line_text[blank]))
            blank++;
        if (blank < length)
            REMAT_TRY(read_sample(of, length));
    }
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = of->path;
    const remat_samples_figures *figures = &of->samples->figures;
    if (figures->samples == 0)
        return remat_fail(of->context, REMAT_BAD_INPUT, &place, "there are no samples");
    if (figures->rows == 0)
        return remat_fail(of->context, REMAT_BAD_INPUT, &place,
                          "no sample has anything to learn in its first %llu tokens",
                          (unsigned long long)of->samples->options.length + 1);
    return REMAT_OK;
}

static remat_status read_config(samples_reading *of)
{
    const char *path = of->tokenizer->path;
    of->end_token = -1;
    if (!path)
        return REMAT_OK;
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 1;
    char *folder = remat_alloc(of->context, length + 1, 1);
    if (!folder)
        return REMAT_NO_MEMORY;
    memcpy(folder, slash ? path : ".", length);
    folder[length] = '\0';
    remat_status status = tokenizer_config_read(of->context, folder, &of->config);
    remat_release(of->context, folder, length + 1, 1);
    if (status != REMAT_OK || !of->config.eos_token)
        return status;
    of->end_token = remat_tokenizer_find(of->tokenizer, of->config.eos_token);
    if (of->end_token < 0) {
        const remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, NULL};
        remat_warn(
            of->context, &place,
            "eos_token of the tokenizer_config.json beside it, '%.60s', is none of its tokens: no end is learned",
            of->config.eos_token);
    }
    return REMAT_OK;
}

static remat_status read_file(samples_reading *of)
{
    FILE *stream;
    REMAT_TRY(read_config(of));
    REMAT_TRY(input_open(of->context, of->path, &stream));
    remat_status status = read_lines(of, stream);
    fclose(stream);
    return status;
}

static void release(samples_reading *of)
{
    tokenizer_config_end(of->context, &of->config);
    chat_template_destroy(of->template);
    remat_release(of->context, of->text, of->text_capacity, 1);
    remat_release(of->context, of->line_text, of->line_capacity, 1);
    remat_release(of->context, of->learned, of->learned_capacity, sizeof *of->learned);
    remat_release(of->context, of->ids, of->id_capacity, sizeof *of->ids);
    remat_release(of->context, of->is_learned, of->learned_id_capacity, sizeof *of->is_learned);
}

remat_status remat_samples_load(remat_tokenizer *tokenizer, const char *path, const remat_samples_options *options,
                                remat_samples **samples)
{
    remat_context *context = tokenizer->context;
    *samples = NULL;
    remat_samples_options wanted;
    remat_samples_options_init(&wanted);
    REMAT_TRY(remat_options_copy(context, &wanted, sizeof wanted, options, "remat_samples_options_init"));
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "length";
    if (wanted.length == 0 || wanted.length > MOST_LENGTH)
        return remat_fail(context, REMAT_INVALID, &place, "%llu is not allowed; from 1 to %d are",
                          (unsigned long long)wanted.length, MOST_LENGTH);
    remat_samples *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->options = wanted;
    samples_reading of = {.context = context, .tokenizer = tokenizer, .samples = made, .path = path};
    remat_status status = read_file(&of);
    release(&of);
    if (status == REMAT_OK)
        *samples = made;
    else
        remat_samples_destroy(made);
    return status;
}

void remat_samples_destroy(remat_samples *samples)
{
    if (!samples)
        return;
    for (int i = 0; i < ARRAYS; i++)
        remat_release(samples->context, samples->arrays[i], samples->capacities[i], sizeof *samples->arrays[i]);
    remat_release(samples->context, samples, 1, sizeof *samples);
}

void remat_samples_figures_get_sized(const remat_samples *samples, remat_samples_figures *figures, size_t size)
{
    remat_struct_give(figures, size, &samples->figures, sizeof samples->figures);
}

remat_status remat_samples_row_get_sized(const remat_samples *samples, uint64_t row, remat_samples_row *to, size_t size)
{
    if (row >= samples->figures.rows)
        return remat_fail(samples->context, REMAT_INVALID, NULL, "row %llu of %llu", (unsigned long long)row,
                          (unsigned long long)samples->figures.rows);
    size_t at = (size_t)(row * samples->options.length);
    const remat_samples_row found = {samples->arrays[0] + at, samples->arrays[1] + at, samples->arrays[2] + at,
                                     samples->arrays[3] + at};
    remat_struct_give(to, size, &found, sizeof found);
    return REMAT_OK;
}
