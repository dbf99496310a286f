#include "train/config_keys.h"

#include <stddef.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

const char *config_key_of(const char *parameter, uint32_t dimension)
{
    static const struct {
        const char *end, *keys[2];
    } all[] = {
        {"embed_tokens.weight", {"vocab_size", "hidden_size"}},
        {"lm_head.weight", {"vocab_size", "hidden_size"}},
        {"q_proj.weight", {"num_attention_heads or head_dim", "hidden_size"}},
        {"k_proj.weight", {"num_key_value_heads or head_dim", "hidden_size"}},
        {"v_proj.weight", {"num_key_value_heads or head_dim", "hidden_size"}},
        {"o_proj.weight", {"hidden_size", "num_attention_heads or head_dim"}},
        {"q_norm.weight", {"head_dim", NULL}},
        {"k_norm.weight", {"head_dim", NULL}},
        {"norm.weight", {"hidden_size", NULL}},
        {"ln_1.weight", {"n_embd", NULL}},
        {"ln_2.weight", {"n_embd", NULL}},
        {"ln_f.weight", {"n_embd", NULL}},
        {"gate_proj.weight", {"intermediate_size", "hidden_size"}},
        {"up_proj.weight", {"intermediate_size", "hidden_size"}},
        {"down_proj.weight", {"hidden_size", "intermediate_size"}},
        {"wte.weight", {"vocab_size", "n_embd"}},
        {"wpe.weight", {"n_positions", "n_embd"}},
        {"c_attn.weight", {"n_embd", "n_embd"}},
        {"mlp.c_fc.weight", {"n_inner", "n_embd"}},
        {"mlp.c_proj.weight", {"n_embd", "n_inner"}},
        {"attn.c_proj.weight", {"n_embd", "n_embd"}},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0] && dimension < 2; i++)
        if (ends_with(parameter, all[i].end))
            return all[i].keys[dimension];
    return NULL;
}

bool config_may_ignore(const char *tensor)
{
    return ends_with(tensor, "rotary_emb.inv_freq") || ends_with(tensor, "attn.bias") ||
           ends_with(tensor, "attn.masked_bias") || ends_with(tensor, "lm_head.weight");
}

const char *config_cause_of(const char *tensor)
{
    if (ends_with(tensor, ".bias"))
        return "are model_type, attention_bias and mlp_bias there right?";
    if (strstr(tensor, "q_norm.") || strstr(tensor, "k_norm."))
        return "is model_type there right?";
    if (strstr(tensor, "lm_head"))
        return "is tie_word_embeddings there right?";
    return "is the number of layers there right?";
}
