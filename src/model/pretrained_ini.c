/* The model file of a folder. Layers have the names of the modules whose weights they take, so that weights are found by their
 * names; layers without weights have names of their own. */
#include "model/pretrained.h"

#include "base/number_text.h"

#include <inttypes.h>
#include <string.h>

typedef struct writer {
    const pretrained_config *config;
    const pretrained_use *use;
    char *text;
    size_t room, used;
} writer;

static void __attribute__((format(printf, 2, 3))) put(writer *w, const char *format, ...)
{
    va_list arguments;
    const size_t at = w->used < w->room ? w->used : w->room;
    va_start(arguments, format);
    w->used += (size_t)text_print_list(w->text + at, w->room - at, format, arguments);
    va_end(arguments);
}

static void put_linear(writer *w, const char *name, const char *input, uint64_t units, bool bias)
{
    put(w, "[%s : fully_connected]\n", name);
    if (input)
        put(w, "input_layers = %s\n", input);
    put(w, "unit = %" PRIu64 "\nbias = %s\nweight_initializer = normal\ninit_scale = %.17g\n", units,
        bias ? "true" : "false", w->config->init_scale);
    if (w->config->family == FAMILY_GPT2)
        put(w, "transposed = true\n");
}

static void put_norm(writer *w, const char *name, const char *input)
{
    const char *type = w->config->family == FAMILY_GPT2 ? "layer_normalization" : "rms_normalization";
    put(w, "[%s : %s]\n", name, type);
    if (input)
        put(w, "input_layers = %s\n", input);
    put(w, "epsilon = %.17g\n", w->config->epsilon);
}

static void put_embedding(writer *w, const char *name)
{
    put(w, "[%s : embedding]\n", name);
    if (w->use->positions)
        put(w, "input_layers = tokens\n");
    put(w, "in_dim = %" PRIu64 "\nout_dim = %" PRIu64 "\ninit_scale = %.17g\n", w->config->vocabulary, w->config->width,
        w->config->init_scale);
}

/* The head is a plain matrix in every family. */
static void put_head(writer *w, const char *embedding)
{
    put(w, "[lm_head : fully_connected]\nunit = %" PRIu64 "\nbias = false\n", w->config->vocabulary);
    if (w->config->tied)
        put(w, "shared_from = %s\n", embedding);
    else
        put(w, "weight_initializer = normal\ninit_scale = %.17g\n", w->config->init_scale);
    put(w, "[loss : cross_entropy]\nmean = labels\n");
}

/* What the attention of every family says about positions. Its inputs come before. */
static void put_attention_use(writer *w)
{
    if (w->use->positions)
        put(w, "positions = true\n");
    if (w->use->cache)
        put(w, "cache = %" PRIu64 "\n", w->use->cache);
}

/* ---- GPT-2 ---- */

static void put_gpt2_layer(writer *w)
{
    const pretrained_config *c = w->config;
    put_norm(w, "transformer.h.{i}.ln_1", NULL);
    put_linear(w, "transformer.h.{i}.attn.c_attn", NULL, 3 * c->width, true);
    put(w, "[transformer.h.{i}.attn.attention : attention_core]\nnum_heads = %" PRIu64 "\ncausal = true\n", c->heads);
    if (w->use->positions)
        put(w, "input_layers = transformer.h.{i}.attn.c_attn, positions\n");
    put_attention_use(w);
    put_linear(w, "transformer.h.{i}.attn.c_proj", NULL, c->width, true);
    put(w, "[transformer.h.{i}.attn.sum : addition]\ninput_layers = {in}, transformer.h.{i}.attn.c_proj\n");
    put_norm(w, "transformer.h.{i}.ln_2", NULL);
    put_linear(w, "transformer.h.{i}.mlp.c_fc", NULL, c->inner, true);
    put(w, "[transformer.h.{i}.mlp.act : activation]\nactivation = %s\n", c->activation);
    put_linear(w, "transformer.h.{i}.mlp.c_proj", NULL, c->width, true);
    put(w, "[transformer.h.{i}.sum : addition]\n");
    put(w, "input_layers = transformer.h.{i}.attn.sum, transformer.h.{i}.mlp.c_proj\n");
}

/* Positions that are given are looked up like tokens. */
static void put_gpt2_positions(writer *w)
{
    const pretrained_config *c = w->config;
    if (!w->use->positions) {
        put(w, "[transformer.wpe : position_embedding]\npositions = %" PRIu64 "\ninit_scale = %.17g\n", c->positions,
            c->init_scale);
        return;
    }
    put(w, "[transformer.wpe : embedding]\ninput_layers = positions\nin_dim = %" PRIu64 "\nout_dim = %" PRIu64,
        c->positions, c->width);
    put(w, "\ninit_scale = %.17g\n[transformer.sum : addition]\ninput_layers = transformer.wte, transformer.wpe\n",
        c->init_scale);
}

static void put_gpt2(writer *w)
{
    put_embedding(w, "transformer.wte");
    put_gpt2_positions(w);
    put(w, "[Repeat layers]\ncount = %" PRIu64 "\n", w->config->layers);
    put_gpt2_layer(w);
    put(w, "[End]\n");
    put_norm(w, "transformer.ln_f", NULL);
    put_head(w, "transformer.wte");
}

/* ---- Llama and its relatives ---- */

static void put_rotary(writer *w, const char *name, const char *input, uint64_t heads)
{
    const pretrained_rope *rope = &w->config->rope;
    put(w, "[%s : rotary_embedding]\ninput_layers = %s%s\nnum_heads = %" PRIu64 "\ntheta = %.17g\n", name, input,
        w->use->positions ? ", positions" : "", heads, rope->theta);
    if (strcmp(rope->scaling, "none") == 0)
        return;
    put(w, "scaling = %s\nfactor = %.17g\noriginal_length = %" PRIu64 "\n", rope->scaling, rope->factor,
        rope->original_length);
    if (strcmp(rope->scaling, "llama3") == 0 || strcmp(rope->scaling, "yarn") == 0)
        put(w, "low_frequency = %.17g\nhigh_frequency = %.17g\nattention_factor = %.17g\n", rope->low, rope->high,
            rope->attention_factor);
}

#define ATTENTION "model.layers.{i}.self_attn."
#define MLP       "model.layers.{i}.mlp."

static void put_head_norm(writer *w, const char *name, const char *input)
{
    put_norm(w, name, input);
    put(w, "size = %" PRIu64 "\n", w->config->head_size);
}

static void put_attention(writer *w)
{
    const pretrained_config *c = w->config;
    const uint64_t wide = c->heads * c->head_size, narrow = c->key_heads * c->head_size;
    const char *q = ATTENTION "q_proj", *k = ATTENTION "k_proj";
    put_linear(w, q, NULL, wide, c->query_bias);
    put_linear(w, k, "model.layers.{i}.input_layernorm", narrow, c->query_bias);
    put_linear(w, ATTENTION "v_proj", "model.layers.{i}.input_layernorm", narrow, c->query_bias);
    if (c->family == FAMILY_QWEN3) {
        put_head_norm(w, ATTENTION "q_norm", q);
        put_head_norm(w, ATTENTION "k_norm", k);
        q = ATTENTION "q_norm";
        k = ATTENTION "k_norm";
    }
    put_rotary(w, ATTENTION "q_rotary", q, c->heads);
    put_rotary(w, ATTENTION "k_rotary", k, c->key_heads);
    put(w, "[" ATTENTION "attention : attention_core]\n");
    put(w, "input_layers = " ATTENTION "q_rotary, " ATTENTION "k_rotary, " ATTENTION "v_proj%s\n",
        w->use->positions ? ", positions" : "");
    put_attention_use(w);
    put(w, "num_heads = %" PRIu64 "\nnum_key_heads = %" PRIu64 "\ncausal = true\n", c->heads, c->key_heads);
    if (c->window)
        put(w, "window = %" PRIu64 "\n", c->window);
    put_linear(w, ATTENTION "o_proj", NULL, c->width, c->output_bias);
    put(w, "[" ATTENTION "sum : addition]\ninput_layers = {in}, " ATTENTION "o_proj\n");
}

static void put_llama_layer(writer *w)
{
    const pretrained_config *c = w->config;
    put_norm(w, "model.layers.{i}.input_layernorm", NULL);
    put_attention(w);
    put_norm(w, "model.layers.{i}.post_attention_layernorm", NULL);
    put_linear(w, MLP "gate_proj", NULL, c->inner, c->inner_bias);
    put_linear(w, MLP "up_proj", "model.layers.{i}.post_attention_layernorm", c->inner, c->inner_bias);
    put(w, "[" MLP "gated : gated]\ninput_layers = " MLP "gate_proj, " MLP "up_proj\nactivation = %s\n", c->activation);
    put_linear(w, MLP "down_proj", NULL, c->width, c->inner_bias);
    put(w, "[" MLP "sum : addition]\ninput_layers = " ATTENTION "sum, " MLP "down_proj\n");
}

static void put_llama(writer *w)
{
    put_embedding(w, "model.embed_tokens");
    put(w, "[Repeat layers]\ncount = %" PRIu64 "\n", w->config->layers);
    put_llama_layer(w);
    put(w, "[End]\n");
    put_norm(w, "model.norm", NULL);
    put_head(w, "model.embed_tokens");
}

static void put_input(writer *w, const char *name)
{
    put(w, "[%s : input]\ninput_shape = %" PRIu64 "\n", name, w->use->length);
}

size_t pretrained_write_ini(const pretrained_config *config, const pretrained_use *use, char *text, size_t room)
{
    writer w = {.config = config, .use = use, .text = text, .room = room};
    put(&w, "[Model]\n");
    if (*use->name)
        put(&w, "name = %s\n", use->name);
    put(&w, "[Optimizer : adamw]\nlearning_rate = 0.0001\n[Dataset : jsonl]\n");
    put_input(&w, "tokens");
    if (use->positions)
        put_input(&w, "positions");
    if (config->family == FAMILY_GPT2)
        put_gpt2(&w);
    else
        put_llama(&w);
    return w.used;
}
