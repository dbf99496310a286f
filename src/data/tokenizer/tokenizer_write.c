/* Writes a tokenizer that was trained as tokenizer.json. */
#include "data/tokenizer/tokenizer_object.h"

#include "base/alloc.h"
#include "base/output.h"
#include "base/output_file.h"

#include <string.h>

static const char byte_level[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "
                                 "\"use_regex\": ";

static void write_added(output *out, const added_tokens *added)
{
    output_text(out, " \"added_tokens\": [");
    for (size_t i = 0; i < added->count; i++) {
        output_field(out, i ? ",\n  {" : "\n  {", "id", added->tokens[i].id);
        output_text_field(out, ", ", "content", added->tokens[i].content);
        output_text(out, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
                         "\"special\": true}");
    }
    output_text(out, "],\n");
}

static void write_parts(output *out, const part_list *splits)
{
    const char *pattern = splits->parts[0].kind == PART_SPLIT ? splits->parts[0].content : NULL;
    output_text(out, " \"normalizer\": null,\n \"pre_tokenizer\": ");
    if (pattern) {
        output_text(out,
                    "{\"type\": \"Sequence\", \"pretokenizers\": [\n  {\"type\": \"Split\", \"pattern\": {\"Regex\": ");
        output_quoted(out, pattern);
        output_text(out, "}, \"behavior\": \"Isolated\", \"invert\": false},\n  ");
    }
    output_text(out, byte_level);
    output_text(out, pattern ? "false}]},\n" : "true},\n");
    output_text(out, " \"post_processor\": ");
    output_text(out, byte_level);
    output_text(out, "true},\n \"decoder\": ");
    output_text(out, byte_level);
    output_text(out, "true},\n");
}

static void write_vocabulary(output *out, const vocabulary *tokens)
{
    output_text(out, "  \"vocab\": {");
    bool is_first = true;
    for (uint32_t id = 0; id < tokens->id_count; id++) {
        const vocabulary_token *token = vocabulary_at(tokens, id);
        if (token)
            output_field(out, is_first ? "\n   " : ",\n   ", vocabulary_text(tokens, token), id);
        is_first = is_first && !token;
    }
    output_text(out, "},\n");
}

/* The merges by rank; ranks are 0, 1, ... without gaps. */
static remat_status write_merges(output *out, const bpe *model)
{
    uint64_t *pairs = remat_alloc(model->context, model->merge_count, sizeof *pairs);
    if (!pairs)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < model->merge_slots; i++)
        if (model->merges[i].pair != UINT64_MAX)
            pairs[model->merges[i].rank] = model->merges[i].pair;
    output_text(out, "  \"merges\": [");
    for (size_t i = 0; i < model->merge_count; i++) {
        const vocabulary *tokens = &model->tokens;
        output_text(out, i ? ",\n   [" : "\n   [");
        output_quoted(out, vocabulary_text(tokens, vocabulary_at(tokens, (uint32_t)(pairs[i] >> 32))));
        output_text(out, ", ");
        output_quoted(out, vocabulary_text(tokens, vocabulary_at(tokens, (uint32_t)pairs[i])));
        output_text(out, "]");
    }
    output_text(out, "]\n");
    remat_release(model->context, pairs, model->merge_count, sizeof *pairs);
    return REMAT_OK;
}

remat_status remat_tokenizer_write(const remat_tokenizer *tokenizer, FILE *stream)
{
    if (!tokenizer->is_trained)
        return remat_fail(tokenizer->context, REMAT_INVALID, NULL,
                          "only a tokenizer that was trained is written; copy the file of this one");
    output *out = remat_alloc(tokenizer->context, 1, sizeof *out);
    if (!out)
        return REMAT_NO_MEMORY;
    output_begin(out, tokenizer->context, stream);
    output_text(out, "{\"version\": \"1.0\",\n \"truncation\": null,\n \"padding\": null,\n");
    write_added(out, &tokenizer->added);
    write_parts(out, &tokenizer->pre_tokenizers);
    output_text(out, " \"model\": {\n  \"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
                     "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null,\n"
                     "  \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n");
    write_vocabulary(out, &tokenizer->model.tokens);
    remat_status status = write_merges(out, &tokenizer->model);
    output_text(out, " }\n}\n");
    remat_status written = output_end(out);
    remat_release(tokenizer->context, out, 1, sizeof *out);
    return status == REMAT_OK ? written : status;
}

static remat_status write_to(const void *user, FILE *stream)
{
    return remat_tokenizer_write(user, stream);
}

remat_status remat_tokenizer_save(const remat_tokenizer *tokenizer, const char *path)
{
    return output_save(tokenizer->context, path, write_to, tokenizer);
}
