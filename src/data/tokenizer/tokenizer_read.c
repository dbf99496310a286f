/* Reads tokenizer.json. Keys may come in any order, so that what depends on others is put together at the end. */
#include "data/tokenizer/read_parts.h"

#include "base/alloc.h"
#include "base/input.h"
#include "base/json_fields.h"

#include <string.h>
#include <sys/stat.h>

/* Two tokens to merge; their texts are in one buffer. */
typedef struct merge_entry {
    size_t left, right;
    uint64_t line;
} merge_entry;

typedef struct tokenizer_reading {
    json_reader *reader;
    remat_context *context;
    remat_tokenizer *tokenizer;
    const char *name;
    merge_entry *merges;
    size_t merge_count, merge_capacity;
    char *texts;
    size_t text_bytes, text_capacity;
    added_entry *added;
    size_t added_count, added_capacity;
    char *unknown; /* unk_token */
    bool has_model;
} tokenizer_reading;

static remat_status fail_kind(const tokenizer_reading *of, const char *key, json_kind kind, const char *wanted)
{
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, key);
    return remat_fail(of->context, REMAT_BAD_INPUT, &place, "%s is not allowed; it must be %s", json_kind_name(kind),
                      wanted);
}

/* ---- the model ---- */

static remat_status read_vocabulary(const tokenizer_reading *of)
{
    json_token token;
    vocabulary *tokens = &of->tokenizer->model.tokens;
    REMAT_TRY(json_read_open(of->reader, REMAT_NOWHERE, "vocab", JSON_OBJECT));
    while (JSON_NEXT_IS(of->reader, &token, JSON_KEY)) {
        uint64_t id;
        /* The text is the reader's: it is copied before the next call. */
        REMAT_TRY(vocabulary_add(tokens, token.text, 0));
        REMAT_TRY(json_read_count(of->reader, REMAT_NOWHERE, "vocab", &id));
        remat_place place = json_field_place(of->reader, REMAT_NOWHERE, "vocab");
        if (id >= INT32_MAX)
            return remat_fail(of->context, REMAT_BAD_INPUT, &place, "the id %llu is too large", (unsigned long long)id);
        tokens->tokens[tokens->token_count - 1].id = (uint32_t)id;
    }
    return REMAT_OK;
}

static remat_status keep_merge_text(tokenizer_reading *of, const char *text, size_t length, size_t *at)
{
    REMAT_TRY(remat_grow(of->context, (void **)&of->texts, &of->text_capacity, of->text_bytes + length + 1, 1));
    *at = of->text_bytes;
    memcpy(of->texts + *at, text, length);
    of->texts[*at + length] = '\0';
    of->text_bytes += length + 1;
    return REMAT_OK;
}

/* "a b" */
static remat_status read_merge_line(tokenizer_reading *of, const char *text, merge_entry *merge)
{
    const char *blank = strchr(text, ' ');
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, "merges");
    if (!blank || strchr(blank + 1, ' '))
        return remat_fail(of->context, REMAT_BAD_INPUT, &place, "'%.60s' is not two tokens with a blank between", text);
    REMAT_TRY(keep_merge_text(of, text, (size_t)(blank - text), &merge->left));
    return keep_merge_text(of, blank + 1, strlen(blank + 1), &merge->right);
}

/* ["a", "b"], behind the bracket. */
static remat_status read_merge_pair(tokenizer_reading *of, merge_entry *merge)
{
    json_token token;
    for (int i = 0; i < 2; i++) {
        REMAT_TRY(json_next(of->reader, &token));
        if (token.kind != JSON_STRING)
            return fail_kind(of, "merges", token.kind, "a token of a pair");
        REMAT_TRY(keep_merge_text(of, token.text, strlen(token.text), i ? &merge->right : &merge->left));
    }
    REMAT_TRY(json_next(of->reader, &token));
    return token.kind == JSON_ARRAY_END ? REMAT_OK : fail_kind(of, "merges", token.kind, "the end of a pair");
}

static remat_status read_merges(tokenizer_reading *of)
{
    json_token token;
    REMAT_TRY(json_read_open(of->reader, REMAT_NOWHERE, "merges", JSON_ARRAY));
    while (!JSON_NEXT_IS(of->reader, &token, JSON_ARRAY_END)) {
        merge_entry merge = {.line = json_place(of->reader).line};
        if (token.kind == JSON_STRING && strncmp(token.text, "#version", 8) == 0)
            continue;
        if (token.kind == JSON_STRING)
            REMAT_TRY(read_merge_line(of, token.text, &merge));
        else if (token.kind == JSON_ARRAY)
            REMAT_TRY(read_merge_pair(of, &merge));
        else
            return fail_kind(of, "merges", token.kind, "a pair of tokens");
        REMAT_TRY(remat_grow(of->context, (void **)&of->merges, &of->merge_capacity, of->merge_count + 1,
                             sizeof *of->merges));
        of->merges[of->merge_count++] = merge;
    }
    return REMAT_OK;
}

/* Settings that these families do not have. */
static remat_status read_nothing(const tokenizer_reading *of, const char *key)
{
    json_token token;
    REMAT_TRY(json_next(of->reader, &token));
    bool is_nothing = token.kind == JSON_NULL || (token.kind == JSON_STRING && !*token.text) ||
                      (token.kind == JSON_INTEGER && token.in_range && token.integer == 0) ||
                      (token.kind == JSON_REAL && strspn(token.text, "0.") == strlen(token.text));
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, key);
    return is_nothing ? REMAT_OK : remat_fail(of->context, REMAT_BAD_INPUT, &place, "this is not supported");
}

static remat_status read_model_type(const tokenizer_reading *of)
{
    const char *type = "";
    REMAT_TRY(json_read_text(of->reader, REMAT_NOWHERE, "model.type", &type));
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, "model.type");
    return strcmp(type, "BPE") == 0
               ? REMAT_OK
               : remat_fail(of->context, REMAT_BAD_INPUT, &place, "'%.60s' is not supported; BPE is", type);
}

static remat_status read_unknown(tokenizer_reading *of)
{
    json_token token;
    REMAT_TRY(json_next(of->reader, &token));
    if (token.kind != JSON_STRING && token.kind != JSON_NULL)
        return fail_kind(of, "unk_token", token.kind, "a string");
    remat_text_release(of->context, of->unknown);
    of->unknown = token.kind == JSON_STRING ? remat_text_copy(of->context, token.text) : NULL;
    return token.kind == JSON_NULL || of->unknown ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status read_model_key(tokenizer_reading *of, const char *key, uint64_t *seen)
{
    bpe *model = &of->tokenizer->model;
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {{"fuse_unk", &model->fuse_unknown},
                 {"byte_fallback", &model->byte_fallback},
                 {"ignore_merges", &model->ignore_merges}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(key, flags[i].key) == 0) {
            json_token token;
            REMAT_TRY(json_next(of->reader, &token));
            if (token.kind != JSON_TRUE && token.kind != JSON_FALSE && token.kind != JSON_NULL)
                return fail_kind(of, flags[i].key, token.kind, "true or false");
            *flags[i].flag = token.kind == JSON_TRUE;
            return REMAT_OK;
        }
    if (strcmp(key, "type") == 0)
        return read_model_type(of);
    if (strcmp(key, "unk_token") == 0)
        return read_unknown(of);
    if (strcmp(key, "dropout") == 0)
        return read_nothing(of, "dropout");
    if (strcmp(key, "continuing_subword_prefix") == 0)
        return read_nothing(of, "continuing_subword_prefix");
    if (strcmp(key, "end_of_word_suffix") == 0)
        return read_nothing(of, "end_of_word_suffix");
    if (strcmp(key, "vocab") == 0) {
        REMAT_TRY(json_field_once(of->reader, REMAT_NOWHERE, "vocab", 0, seen));
        return read_vocabulary(of);
    }
    if (strcmp(key, "merges") == 0) {
        REMAT_TRY(json_field_once(of->reader, REMAT_NOWHERE, "merges", 1, seen));
        return read_merges(of);
    }
    return json_skip(of->reader);
}

static remat_status read_model(tokenizer_reading *of)
{
    json_token token;
    uint64_t seen = 0;
    REMAT_TRY(json_read_open(of->reader, REMAT_NOWHERE, "model", JSON_OBJECT));
    while (JSON_NEXT_IS(of->reader, &token, JSON_KEY))
        REMAT_TRY(read_model_key(of, token.text, &seen));
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, "model");
    if (seen != 3)
        return remat_fail(of->context, REMAT_BAD_INPUT, &place, "it has no '%s'", seen & 1 ? "merges" : "vocab");
    of->has_model = true;
    return REMAT_OK;
}

/* ---- added tokens ---- */

static remat_status read_added_key(const tokenizer_reading *of, added_entry *entry, const char *key)
{
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {{"single_word", &entry->token.single_word},
                 {"lstrip", &entry->token.lstrip},
                 {"rstrip", &entry->token.rstrip},
                 {"normalized", &entry->token.normalized},
                 {"special", &entry->token.special}};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(key, flags[i].key) == 0)
            return json_read_bool(of->reader, REMAT_NOWHERE, flags[i].key, flags[i].flag);
    if (strcmp(key, "id") == 0) {
        uint64_t id;
        REMAT_TRY(json_read_count(of->reader, REMAT_NOWHERE, "added_tokens", &id));
        entry->token.id = id < INT32_MAX ? (uint32_t)id : INT32_MAX;
        return REMAT_OK;
    }
    if (strcmp(key, "content") != 0 || entry->token.content)
        return json_skip(of->reader);
    const char *text = "";
    REMAT_TRY(json_read_text(of->reader, REMAT_NOWHERE, "content", &text));
    entry->token.content = remat_text_copy(of->context, text);
    return entry->token.content ? REMAT_OK : REMAT_NO_MEMORY;
}

/* Behind the opening brace. */
static remat_status read_added_token(tokenizer_reading *of)
{
    json_token token;
    REMAT_TRY(
        remat_grow(of->context, (void **)&of->added, &of->added_capacity, of->added_count + 1, sizeof *of->added));
    added_entry *entry = &of->added[of->added_count++];
    *entry = (added_entry){.line = json_place(of->reader).line, .token = {.id = NO_TOKEN, .normalized = true}};
    while (JSON_NEXT_IS(of->reader, &token, JSON_KEY))
        REMAT_TRY(read_added_key(of, entry, token.text));
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, "added_tokens");
    if (!entry->token.content || entry->token.id == NO_TOKEN)
        return remat_fail(of->context, REMAT_BAD_INPUT, &place, "a token has no '%s'",
                          entry->token.content ? "id" : "content");
    return REMAT_OK;
}

static remat_status read_added(tokenizer_reading *of)
{
    json_token token;
    REMAT_TRY(json_read_open(of->reader, REMAT_NOWHERE, "added_tokens", JSON_ARRAY));
    while (JSON_NEXT_IS(of->reader, &token, JSON_OBJECT))
        REMAT_TRY(read_added_token(of));
    return token.kind == JSON_ARRAY_END ? REMAT_OK : fail_kind(of, "added_tokens", token.kind, "an object");
}

/* ---- the file ---- */

/* Truncation and padding are for whoever makes batches: here they are not done. */
static remat_status read_ignored(const tokenizer_reading *of, const char *key)
{
    json_token token;
    REMAT_TRY(json_next(of->reader, &token));
    remat_place place = json_field_place(of->reader, REMAT_NOWHERE, key);
    if (token.kind != JSON_NULL)
        remat_warn(of->context, &place, "this is ignored");
    return json_skip_rest(of->reader, &token);
}

static remat_status read_key(tokenizer_reading *of, const char *key, uint64_t *seen)
{
    static const char *const lists[] = {"normalizer", "pre_tokenizer", "post_processor", "decoder"};
    for (unsigned i = 0; i < 4; i++)
        if (strcmp(key, lists[i]) == 0) {
            REMAT_TRY(json_field_once(of->reader, REMAT_NOWHERE, lists[i], i, seen));
            return tokenizer_read_parts(of->reader, of->tokenizer, (part_list_kind)i);
        }
    if (strcmp(key, "model") == 0) {
        REMAT_TRY(json_field_once(of->reader, REMAT_NOWHERE, "model", 4, seen));
        return read_model(of);
    }
    if (strcmp(key, "added_tokens") == 0) {
        REMAT_TRY(json_field_once(of->reader, REMAT_NOWHERE, "added_tokens", 5, seen));
        return read_added(of);
    }
    if (strcmp(key, "truncation") == 0 || strcmp(key, "padding") == 0)
        return read_ignored(of, key[0] == 't' ? "truncation" : "padding");
    if (strcmp(key, "version") == 0) {
        const char *version = "";
        REMAT_TRY(json_read_text(of->reader, REMAT_NOWHERE, "version", &version));
        remat_place place = json_field_place(of->reader, REMAT_NOWHERE, "version");
        if (strcmp(version, "1.0") != 0)
            return remat_fail(of->context, REMAT_BAD_INPUT, &place, "'%.60s' is unknown; 1.0 is read", version);
        return REMAT_OK;
    }
    return json_skip(of->reader);
}

/* ---- putting it together ---- */

/* The id of a text of a merge; the text is `length` bytes at `at`. */
static remat_status find_merged(const tokenizer_reading *of, const char *text, size_t length, const remat_place *place,
                                uint32_t *id)
{
    *id = vocabulary_find(&of->tokenizer->model.tokens, text, length);
    if (*id != NO_TOKEN)
        return REMAT_OK;
    return remat_fail(of->context, REMAT_BAD_INPUT, place, "the token '%.*s' is not in the vocabulary",
                      (int)(length < 60 ? length : 60), text);
}

static remat_status resolve_merges(tokenizer_reading *of)
{
    bpe *model = &of->tokenizer->model;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = of->name;
    place.field = "merges";
    if (of->merge_count > UINT32_MAX / 4)
        return remat_fail(of->context, REMAT_BAD_INPUT, &place, "there are too many");
    REMAT_TRY(bpe_make_merges(model, of->merge_count));
    for (size_t i = 0; i < of->merge_count; i++) {
        const merge_entry *merge = &of->merges[i];
        const char *left = of->texts + merge->left, *right = of->texts + merge->right;
        size_t length = strlen(left), other = strlen(right), at;
        uint32_t ids[3];
        place.line = merge->line;
        REMAT_TRY(find_merged(of, left, length, &place, &ids[0]));
        REMAT_TRY(find_merged(of, right, other, &place, &ids[1]));
        /* Both texts in a row, behind all others. */
        size_t end = of->text_bytes;
        REMAT_TRY(keep_merge_text(of, "", 0, &at));
        REMAT_TRY(remat_grow(of->context, (void **)&of->texts, &of->text_capacity, at + length + other, 1));
        memcpy(of->texts + at, of->texts + merge->left, length);
        memcpy(of->texts + at + length, of->texts + merge->right, other);
        REMAT_TRY(find_merged(of, of->texts + at, length + other, &place, &ids[2]));
        of->text_bytes = end;
        bpe_add_merge(model, ids[0], ids[1], (uint32_t)i, ids[2]);
    }
    return REMAT_OK;
}

static remat_status finish(tokenizer_reading *of)
{
    remat_tokenizer *tokenizer = of->tokenizer;
    bpe *model = &tokenizer->model;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = of->name;
    place.field = "model";
    if (!of->has_model)
        return remat_fail(of->context, REMAT_BAD_INPUT, &place, "it is missing");
    place.field = "vocab";
    const part_list *splits = &tokenizer->pre_tokenizers;
    model->byte_level = splits->count && splits->parts[splits->count - 1].kind == PART_BYTE_LEVEL;
    REMAT_TRY(vocabulary_index(&model->tokens, model->byte_level, &place));
    REMAT_TRY(resolve_merges(of));
    if (of->unknown) {
        model->unknown = vocabulary_find(&model->tokens, of->unknown, strlen(of->unknown));
        place.field = "unk_token";
        if (model->unknown == NO_TOKEN)
            remat_warn(of->context, &place, "'%.60s' is not in the vocabulary: unknown characters are dropped",
                       of->unknown);
    }
    place.field = "added_tokens";
    return tokenizer_ready(tokenizer, of->added, of->added_count, &place);
}

static remat_status read_all(tokenizer_reading *of)
{
    json_token token;
    uint64_t seen = 0;
    REMAT_TRY(json_read_open(of->reader, REMAT_NOWHERE, NULL, JSON_OBJECT));
    while (JSON_NEXT_IS(of->reader, &token, JSON_KEY))
        REMAT_TRY(read_key(of, token.text, &seen));
    REMAT_TRY(json_next(of->reader, &token)); /* nothing behind it */
    return finish(of);
}

static void release(tokenizer_reading *of)
{
    for (size_t i = 0; i < of->added_count; i++)
        remat_text_release(of->context, of->added[i].token.content);
    remat_release(of->context, of->added, of->added_capacity, sizeof *of->added);
    remat_release(of->context, of->merges, of->merge_capacity, sizeof *of->merges);
    remat_release(of->context, of->texts, of->text_capacity, 1);
    remat_text_release(of->context, of->unknown);
    json_reader_destroy(of->reader);
}

remat_status remat_tokenizer_read(remat_context *context, FILE *stream, const char *name, remat_tokenizer **tokenizer)
{
    tokenizer_reading of = {.context = context, .name = name};
    *tokenizer = NULL;
    remat_status status = tokenizer_create(context, &of.tokenizer);
    if (status == REMAT_OK)
        status = json_reader_create(context, stream, name, &of.reader);
    if (status == REMAT_OK)
        status = read_all(&of);
    release(&of);
    if (status == REMAT_OK)
        *tokenizer = of.tokenizer;
    else
        remat_tokenizer_destroy(of.tokenizer);
    return status;
}

remat_status remat_tokenizer_load(remat_context *context, const char *path, remat_tokenizer **tokenizer)
{
    static const char file[] = "/tokenizer.json";
    *tokenizer = NULL;
    struct stat info;
    bool is_folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    size_t bytes = strlen(path) + sizeof file;
    char *whole = remat_alloc(context, bytes, 1);
    if (!whole)
        return REMAT_NO_MEMORY;
    snprintf(whole, bytes, "%s%s", path, is_folder ? file : "");
    FILE *stream;
    remat_status status = input_open(context, whole, &stream);
    if (status == REMAT_OK) {
        status = remat_tokenizer_read(context, stream, whole, tokenizer);
        fclose(stream);
    }
    if (status == REMAT_OK && !((*tokenizer)->path = remat_text_copy(context, whole))) {
        remat_tokenizer_destroy(*tokenizer);
        *tokenizer = NULL;
        status = REMAT_NO_MEMORY;
    }
    remat_release(context, whole, bytes, 1);
    return status;
}
