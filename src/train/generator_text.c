/* Continues a prompt token by token, and passes its text on as soon as it is known. */
#include "train/generator_object.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <math.h>
#include <string.h>

/* The tokens of the prompt that the first piece of text is decoded with: some tokenizers write the first token of a text without the
 * blank before it. */
enum { CONTEXT_TOKENS = 5 };

void remat_text_options_init_sized(remat_text_options *options, size_t size)
{
    const remat_text_options defaults = {.count = 200, .temperature = 0.8, .top_k = 40, .top_p = 1};
    remat_options_give(options, size, &defaults, sizeof defaults);
}

/* A text that is being written. */
typedef struct text_writer {
    remat_generator *generator;
    const remat_text_options *options;
    bool (*emit)(void *user, const char *text, size_t bytes);
    void *user;
    int32_t *ids; /* the prompt, and what was drawn */
    size_t count, capacity;
    size_t decoded, shown; /* ids from `decoded` to `shown` are those that the next ones are decoded with */
    char *held;            /* text that may be the beginning of a stop */
    size_t held_bytes, held_capacity;
    bool ended;
} text_writer;

/* ---- the prompt ---- */

remat_status generator_load_tokenizer(remat_generator *generator)
{
    if (generator->tokenizer)
        return REMAT_OK;
    remat_tokenizer *tokenizer;
    tokenizer_config config = {0};
    REMAT_TRY(remat_tokenizer_load(generator->context, generator->folder, &tokenizer));
    remat_status status = tokenizer_config_read(generator->context, generator->folder, &config);
    if (status != REMAT_OK) {
        tokenizer_config_end(generator->context, &config);
        remat_tokenizer_destroy(tokenizer);
        return status;
    }
    generator->tokenizer = tokenizer;
    generator->config = config;
    return REMAT_OK;
}

static remat_status add_ids(text_writer *w, const int32_t *ids, size_t count)
{
    if (count == 0)
        return REMAT_OK;
    REMAT_TRY(remat_grow(w->generator->context, (void **)&w->ids, &w->capacity, w->count + count, sizeof *w->ids));
    memcpy(w->ids + w->count, ids, count * sizeof *ids);
    w->count += count;
    return REMAT_OK;
}

remat_status generator_load_template(remat_generator *generator)
{
    const tokenizer_config *config = &generator->config;
    if (generator->template)
        return REMAT_OK;
    if (!config->chat_template)
        return remat_fail(
            generator->context, REMAT_BAD_INPUT, NULL,
            "'%.200s' has no chat template: neither tokenizer_config.json nor chat_template.jinja says one",
            generator->folder);
    return chat_template_compile(generator->context, config->chat_template, config->template_name,
                                 &generator->template);
}

static remat_status write_message(remat_generator *generator, const char *prompt, const char **text, size_t *bytes)
{
    const tokenizer_config *config = &generator->config;
    const chat_message message = {"user", prompt};
    const chat_values values = {config->bos_token, config->eos_token, true};
    REMAT_TRY(generator_load_template(generator));
    return chat_template_render(generator->template, &message, 1, &values, text, bytes);
}

static remat_status check_ids(const remat_generator *generator, const int32_t *ids, size_t count)
{
    const remat_place place = {generator->folder, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, "tokenizer.json"};
    for (size_t i = 0; i < count; i++)
        if ((uint64_t)ids[i] >= generator->vocabulary)
            return remat_fail(generator->context, REMAT_BAD_INPUT, &place,
                              "its token %d is in the prompt, and the model has tokens from 0 to %llu; it is the "
                              "tokenizer of another model",
                              (int)ids[i], (unsigned long long)generator->vocabulary - 1);
    return REMAT_OK;
}

static remat_status read_prompt(text_writer *w)
{
    remat_generator *generator = w->generator;
    const char *text = w->options->prompt ? w->options->prompt : "";
    size_t bytes = strlen(text), count;
    const int32_t *ids;
    const bool chat = w->options->chat;
    if (chat)
        REMAT_TRY(write_message(generator, text, &text, &bytes));
    REMAT_TRY(remat_tokenizer_encode(generator->tokenizer, text, bytes, !chat, &ids, &count));
    REMAT_TRY(check_ids(generator, ids, count));
    REMAT_TRY(add_ids(w, ids, count));
    if (count == 0 && generator->config.bos_token) {
        const int32_t first = remat_tokenizer_find(generator->tokenizer, generator->config.bos_token);
        if (first >= 0)
            REMAT_TRY(add_ids(w, &first, 1));
    }
    if (w->count == 0)
        return remat_fail(generator->context, REMAT_INVALID, NULL, "the prompt is empty, and there is no begin token");
    if (w->count >= generator->cache)
        return remat_fail(generator->context, REMAT_INVALID, NULL,
                          "the prompt has %zu tokens, and the cache has room for %llu with what follows", w->count,
                          (unsigned long long)generator->cache);
    w->shown = w->count;
    w->decoded = w->count > CONTEXT_TOKENS ? w->count - CONTEXT_TOKENS : 0;
    return REMAT_OK;
}

/* ---- the text ---- */

/* How many bytes at the end of what is held may begin a stop. */
static size_t stop_prefix(const text_writer *w)
{
    size_t most = 0;
    for (const char *const *stop = w->options->stops; stop && *stop; stop++) {
        size_t length = strlen(*stop);
        length = length < w->held_bytes ? length : w->held_bytes;
        while (length > most && memcmp(w->held + w->held_bytes - length, *stop, length) != 0)
            length--;
        most = length > most ? length : most;
    }
    return most;
}

/* Where the first stop begins; SIZE_MAX: nowhere. */
static size_t find_stop(const text_writer *w)
{
    size_t first = SIZE_MAX;
    for (const char *const *stop = w->options->stops; stop && *stop; stop++) {
        const char *found = **stop ? memmem(w->held, w->held_bytes, *stop, strlen(*stop)) : NULL;
        if (found && (size_t)(found - w->held) < first)
            first = (size_t)(found - w->held);
    }
    return first;
}

/* Passes on what is held, but for the last `kept` bytes. */
static void show(text_writer *w, size_t kept)
{
    const size_t bytes = w->held_bytes - kept;
    if (bytes == 0)
        return;
    if (!w->emit(w->user, w->held, bytes))
        w->ended = true;
    memmove(w->held, w->held + bytes, kept);
    w->held_bytes = kept;
}

static remat_status add_text(text_writer *w, const char *text, size_t bytes)
{
    if (bytes == 0)
        return REMAT_OK;
    REMAT_TRY(remat_grow(w->generator->context, (void **)&w->held, &w->held_capacity, w->held_bytes + bytes, 1));
    memcpy(w->held + w->held_bytes, text, bytes);
    w->held_bytes += bytes;
    const size_t stop = find_stop(w);
    if (stop == SIZE_MAX) {
        show(w, stop_prefix(w));
        return REMAT_OK;
    }
    w->held_bytes = stop;
    show(w, 0);
    w->ended = true;
    return REMAT_OK;
}

/* The text of the newest tokens. Where it ends within a character, which the decoder writes as U+FFFD, it waits for more. */
static remat_status show_tokens(text_writer *w, bool at_end)
{
    static const char unknown[] = "\xef\xbf\xbd";
    remat_tokenizer *tokenizer = w->generator->tokenizer;
    const char *text;
    size_t before, bytes;
    REMAT_TRY(remat_tokenizer_decode(tokenizer, w->ids + w->decoded, w->shown - w->decoded, false, &text, &before));
    REMAT_TRY(remat_tokenizer_decode(tokenizer, w->ids + w->decoded, w->count - w->decoded, false, &text, &bytes));
    const bool is_cut = bytes >= 3 && memcmp(text + bytes - 3, unknown, 3) == 0;
    if (bytes <= before || (is_cut && !at_end))
        return REMAT_OK;
    REMAT_TRY(add_text(w, text + before, bytes - before));
    w->decoded = w->shown;
    w->shown = w->count;
    return REMAT_OK;
}

static remat_status write_tokens(text_writer *w)
{
    remat_generator *generator = w->generator;
    const char *end_text = generator->config.eos_token;
    const int32_t end = end_text ? remat_tokenizer_find(generator->tokenizer, end_text) : -1;
    const float *logits;
    remat_generator_clear(generator);
    REMAT_TRY(remat_generator_feed(generator, w->ids, w->count, &logits));
    for (uint64_t i = 0; i < w->options->count && !w->ended; i++) {
        const int32_t token = generator_draw(generator, logits, w->options, i);
        if (token == end)
            break;
        REMAT_TRY(add_ids(w, &token, 1));
        REMAT_TRY(show_tokens(w, false));
        if (w->ended || i + 1 == w->options->count || generator->used == generator->cache)
            break;
        REMAT_TRY(remat_generator_feed(generator, &token, 1, &logits));
    }
    if (!w->ended)
        REMAT_TRY(show_tokens(w, true));
    if (!w->ended)
        show(w, 0);
    return REMAT_OK;
}

remat_status remat_generator_write(remat_generator *generator, const remat_text_options *options,
                                   bool (*emit)(void *user, const char *text, size_t bytes), void *user)
{
    remat_context *context = generator->context;
    remat_text_options wanted;
    remat_text_options_init(&wanted);
    REMAT_TRY(remat_options_copy(context, &wanted, sizeof wanted, options, "remat_text_options_init"));
    if (!(wanted.temperature >= 0) || !(wanted.top_p > 0))
        return remat_fail(context, REMAT_INVALID, NULL, "temperature is from 0 on, and top_p above 0");
    REMAT_TRY(generator_load_tokenizer(generator));
    text_writer w = {.generator = generator, .options = &wanted, .emit = emit, .user = user};
    remat_status status = read_prompt(&w);
    if (status == REMAT_OK)
        status = write_tokens(&w);
    remat_release(context, w.ids, w.capacity, sizeof *w.ids);
    remat_release(context, w.held, w.held_capacity, 1);
    return status;
}
