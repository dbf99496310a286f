/* Makes a byte-level tokenizer from texts. */
#include "data/tokenizer/bpe_train.h"
#include "data/tokenizer/byte_letters.h"
#include "data/tokenizer/read_parts.h"
#include "data/tokenizer/unicode.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/options.h"

#include <errno.h>
#include <string.h>

enum { MOST_TOKENS = 10000000 };

void remat_tokenizer_options_init_sized(remat_tokenizer_options *options, size_t size)
{
    const remat_tokenizer_options defaults = {.vocabulary = 1000, .least = 2, .special = "<|endoftext|>"};
    remat_options_give(options, size, &defaults, sizeof defaults);
}

typedef struct training {
    remat_context *context;
    remat_tokenizer_options options;
    remat_tokenizer *tokenizer;
    char **special;
    size_t special_count, special_capacity;
    byte_map words;
    uint64_t *counts;
    size_t count_capacity;
    char *text; /* of one file */
    size_t text_capacity;
} training;

/* ---- words ---- */

static remat_status count_word(void *user, const text_span *word)
{
    training *of = user;
    uint32_t number;
    size_t known = of->words.count;
    REMAT_TRY(byte_map_add(&of->words, word->bytes, word->length, &number));
    REMAT_TRY(remat_grow(of->context, (void **)&of->counts, &of->count_capacity, of->words.count, sizeof *of->counts));
    if (number == known)
        of->counts[number] = 0;
    of->counts[number]++;
    return REMAT_OK;
}

static remat_status read_file(training *of, const char *path, size_t *length)
{
    FILE *stream;
    *length = 0;
    REMAT_TRY(input_open(of->context, path, &stream));
    remat_status status = REMAT_OK;
    for (size_t got = 1; got && status == REMAT_OK;) {
        enum { PART = 1 << 16 };
        status = remat_grow(of->context, (void **)&of->text, &of->text_capacity, *length + PART, 1);
        if (status != REMAT_OK)
            break;
        got = fread(of->text + *length, 1, PART, stream);
        *length += got;
    }
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    if (status == REMAT_OK && ferror(stream))
        status = remat_fail(of->context, REMAT_IO, &place, "reading failed: %s", strerror(errno));
    fclose(stream);
    return status;
}

static remat_status count_file(training *of, const char *path)
{
    size_t length;
    REMAT_TRY(read_file(of, path, &length));
    remat_status status = tokenizer_check_text(of->context, of->text, length);
    if (status != REMAT_OK)
        return remat_fail_in_file(of->context, path, REMAT_NOWHERE);
    const text_span whole = {.bytes = (const unsigned char *)of->text, .length = length};
    return parts_split(of->context, &of->tokenizer->pre_tokenizers, whole, count_word, of);
}

/* ---- the tokenizer ---- */

static remat_status add_special(training *of)
{
    const char *at = of->options.special ? of->options.special : "";
    for (at += strspn(at, " "); *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        REMAT_TRY(remat_grow(of->context, (void **)&of->special, &of->special_capacity, of->special_count + 1,
                             sizeof *of->special));
        char *copy = remat_alloc(of->context, length + 1, 1);
        if (!copy)
            return REMAT_NO_MEMORY;
        memcpy(copy, at, length);
        copy[length] = '\0';
        of->special[of->special_count++] = copy;
        at += length;
        uint32_t code;
        if (length == 1 || (length == 2 && unicode_take((const unsigned char *)copy, &code) == 2))
            return remat_fail(of->context, REMAT_INVALID, NULL, "a special token needs two letters at least, not '%s'",
                              copy);
    }
    return REMAT_OK;
}

static remat_status add_split(training *of)
{
    part_list *list = &of->tokenizer->pre_tokenizers;
    const char *pattern = of->options.pattern;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "pattern";
    if (pattern)
        REMAT_TRY(tokenizer_add_part(of->context, list, (token_part){.kind = PART_SPLIT, .behavior = SPLIT_ISOLATED},
                                     pattern, false, pattern, &place));
    REMAT_TRY(tokenizer_add_part(of->context, list, (token_part){.kind = PART_BYTE_LEVEL, .behavior = SPLIT_ISOLATED},
                                 pattern ? NULL : GPT2_PATTERN, false, NULL, &place));
    return tokenizer_add_part(of->context, &of->tokenizer->decoders, (token_part){.kind = PART_BYTE_LEVEL}, NULL, false,
                              NULL, &place);
}

/* A token with its letters. */
static remat_status add_token(training *of, const unsigned char *bytes, size_t length, uint32_t id)
{
    char *text = remat_alloc(of->context, 2 * length + 1, 1);
    if (!text)
        return REMAT_NO_MEMORY;
    size_t at = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char letter[4];
        size_t count = unicode_put(byte_letter(bytes[i]), letter);
        memcpy(text + at, letter, count);
        at += count;
    }
    text[at] = '\0';
    remat_status status = vocabulary_add(&of->tokenizer->model.tokens, text, id);
    remat_release(of->context, text, 2 * length + 1, 1);
    return status;
}

static remat_status add_tokens(training *of, const bpe_training *found)
{
    bpe *model = &of->tokenizer->model;
    for (size_t i = 0; i < of->special_count; i++)
        REMAT_TRY(vocabulary_add(&model->tokens, of->special[i], (uint32_t)i));
    for (size_t i = 0; i < found->tokens.count; i++)
        REMAT_TRY(add_token(of, byte_map_at(&found->tokens, (uint32_t)i), found->tokens.strings[i].length,
                            found->first + (uint32_t)i));
    remat_place place = REMAT_PLACE_NOWHERE;
    model->byte_level = true;
    REMAT_TRY(vocabulary_index(&model->tokens, true, &place));
    REMAT_TRY(bpe_make_merges(model, found->merge_count));
    for (size_t i = 0; i < found->merge_count; i++)
        bpe_add_merge(model, found->merges[i].left, found->merges[i].right, (uint32_t)i, found->merges[i].id);
    return REMAT_OK;
}

static remat_status finish(training *of)
{
    added_entry *entries = remat_alloc_zeroed(of->context, of->special_count, sizeof *entries);
    if (!entries)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < of->special_count; i++)
        entries[i].token = (added_token){.id = (uint32_t)i, .content = of->special[i], .special = true};
    remat_place place = REMAT_PLACE_NOWHERE;
    remat_status status = tokenizer_ready(of->tokenizer, entries, of->special_count, &place);
    remat_release(of->context, entries, of->special_count, sizeof *entries);
    of->tokenizer->is_trained = true;
    return status;
}

static remat_status train(training *of, const char *const *paths, size_t count)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    REMAT_TRY(tokenizer_create(of->context, &of->tokenizer));
    REMAT_TRY(add_special(of));
    place.field = "vocabulary";
    uint64_t fewest = 256 + of->special_count;
    if (of->options.vocabulary < fewest || of->options.vocabulary > MOST_TOKENS)
        return remat_fail(of->context, REMAT_INVALID, &place, "%llu tokens are not allowed; from %llu to %d are",
                          (unsigned long long)of->options.vocabulary, (unsigned long long)fewest, MOST_TOKENS);
    REMAT_TRY(add_split(of));
    for (size_t i = 0; i < count; i++)
        REMAT_TRY(count_file(of, paths[i]));
    bpe_training found = {.context = of->context,
                          .words = &of->words,
                          .counts = of->counts,
                          .first = (uint32_t)of->special_count,
                          .vocabulary = of->options.vocabulary,
                          .least = of->options.least,
                          .tokens = {.context = of->context}};
    remat_status status = bpe_train(&found);
    if (status == REMAT_OK)
        status = add_tokens(of, &found);
    bpe_training_end(&found);
    return status == REMAT_OK ? finish(of) : status;
}

remat_status remat_tokenizer_train(remat_context *context, const char *const *paths, size_t path_count,
                                   const remat_tokenizer_options *options, remat_tokenizer **tokenizer)
{
    training of = {.context = context, .words = {.context = context}};
    *tokenizer = NULL;
    remat_tokenizer_options_init(&of.options);
    REMAT_TRY(remat_options_copy(context, &of.options, sizeof of.options, options, "remat_tokenizer_options_init"));
    remat_status status = train(&of, paths, path_count);
    for (size_t i = 0; i < of.special_count; i++)
        remat_text_release(context, of.special[i]);
    remat_release(context, of.special, of.special_capacity, sizeof *of.special);
    remat_release(context, of.counts, of.count_capacity, sizeof *of.counts);
    remat_release(context, of.text, of.text_capacity, 1);
    byte_map_end(&of.words);
    if (status == REMAT_OK)
        *tokenizer = of.tokenizer;
    else
        remat_tokenizer_destroy(of.tokenizer);
    return status;
}
