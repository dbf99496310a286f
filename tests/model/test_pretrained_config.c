/* config.json of folders in Hugging Face's layout: what each key may be, what is refused and how, and memory that runs out. */
#include "support/damaged_text.h"
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#define SIZES                                                                                        \
    "\"vocab_size\": 48, \"hidden_size\": 16, \"intermediate_size\": 24, \"num_hidden_layers\": 2, " \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"max_position_embeddings\": 32"

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"vocab_size\": 48, \"n_embd\": 16, \"n_layer\": 2, \"n_head\": 2, \"n_positions\": "
    "32, "
    "\"n_inner\": null, \"layer_norm_epsilon\": 1e-5, \"activation_function\": \"gelu_new\", \"tie_word_embeddings\": "
    "true, "
    "\"scale_attn_by_inverse_layer_idx\": false, \"architectures\": [\"a\"], \"task\": {\"a\": {\"b\": [1]}}}\n",
    "{\"model_type\": \"llama\", " SIZES
    ", \"rms_norm_eps\": 1e-6, \"hidden_act\": \"silu\", \"attention_bias\": true, "
    "\"mlp_bias\": true, \"torch_dtype\": \"bfloat16\", \"initializer_range\": 0.02, \"rope_theta\": 10000, "
    "\"rope_scaling\": "
    "{\"rope_type\": \"llama3\", \"factor\": 2.0, \"low_freq_factor\": 1, \"high_freq_factor\": 4, "
    "\"original_max_position_embeddings\": 16}}",
    "{\"model_type\": \"mistral\", " SIZES
    ", \"head_dim\": 4, \"sliding_window\": 8, \"rope_parameters\": {\"rope_type\": "
    "\"yarn\", \"rope_theta\": 10000.0, \"factor\": 2, \"beta_slow\": 1, \"beta_fast\": 32, \"attention_factor\": "
    "1.0}}",
    "{\"model_type\": \"qwen2\", " SIZES
    ", \"use_sliding_window\": true, \"max_window_layers\": 2, \"sliding_window\": 8, "
    "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}}",
    "{\"model_type\": \"qwen3\", " SIZES
    ", \"head_dim\": 4, \"layer_types\": [\"sliding_attention\", \"sliding_attention\"], "
    "\"sliding_window\": 8, \"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2}}",
};
enum { CONFIGS = sizeof configs / sizeof *configs };

/* A model is there after success only. */
static remat_status load(remat_context *context, const char *const *settings)
{
    remat_model *model;
    remat_status status = remat_model_load_with(context, scratch_folder(), settings, &model);
    if (status != REMAT_OK)
        assert_null(model);
    remat_model_destroy(model);
    return status;
}

static remat_status read_config(remat_context *context, const char *text, void *user)
{
    static const char *const settings[] = {"model.length=8", "model.batch_size=2", NULL};
    (void)user;
    scratch_write_text("config.json", text);
    remat_status status = load(context, settings);
    /* Two keys may be fine alone and not together, which the reader of model files says. */
    return status == REMAT_INVALID && strstr(remat_context_message(context), "n_positions") ? REMAT_BAD_INPUT : status;
}

static void damaged_files_are_refused_by_name(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < CONFIGS; i++) {
        expect_ok(f, read_config(f->context, configs[i], NULL));
        assert_true(expect_beginnings_judged(f, configs[i], read_config, NULL, "config.json") >=
                    strlen(configs[i]) - 1);
        assert_true(expect_other_values_judged(f, configs[i], read_config, NULL, "config.json") > 100);
    }
}

static void values_are_refused_by_key(void **state)
{
    fixture *f = *state;
    static const char *const cases[][2] = {
        {"{}", "config.json: model_type: it is missing; it says which family the model is of"},
        {"{\"model_type\": \"bert\"}", "config.json:1: model_type: 'bert' is not supported; it may be gpt2, llama"},
        {"{\"model_type\": 1}", "config.json:1: model_type: it must be a text"},
        {"{\"model_type\": \"llama\", \"model_type\": \"llama\"}", "config.json:1: model_type: it is there twice"},
        {"{\"model_type\": \"llama\"}", "config.json: vocab_size: it is missing; a model of this family needs it"},
        {"{\"model_type\": \"llama\",\n\"vocab_size\": 0}",
         "config.json:2: vocab_size: it must be a whole number from 1"},
        {"{\"model_type\": \"llama\", \"vocab_size\": 3000000000}", "vocab_size: it must be a whole number from 1"},
        {"{\"model_type\": \"llama\", \"vocab_size\": 99999999999999999999}", "vocab_size: it must be a whole number"},
        {"{\"model_type\": \"llama\", " SIZES ", \"num_key_value_heads\": 3}",
         "num_key_value_heads: it is there twice"},
        {"{\"model_type\": \"llama\", \"vocab_size\": 4, \"hidden_size\": 12, \"intermediate_size\": 4, "
         "\"num_hidden_layers\": 1, \"num_attention_heads\": 5}",
         "num_attention_heads: 5 does not divide hidden_size, which is 12"},
        {"{\"model_type\": \"llama\", \"vocab_size\": 4, \"hidden_size\": 12, \"intermediate_size\": 4, "
         "\"num_hidden_layers\": 1, \"num_attention_heads\": 4}",
         "head_dim: the heads have an odd number of values"},
        {"{\"model_type\": \"llama\", \"vocab_size\": 4, \"hidden_size\": 12, \"intermediate_size\": 4, "
         "\"num_hidden_layers\": 1, \"num_attention_heads\": 4, \"num_key_value_heads\": 3}",
         "num_key_value_heads: 3 does not divide num_attention_heads, which is 4"},
        {"{\"model_type\": \"llama\", " SIZES ", \"rms_norm_eps\": -1}", "rms_norm_eps: it must be a number from 0 on"},
        {"{\"model_type\": \"llama\", " SIZES ", \"rms_norm_eps\": \"1\"}",
         "rms_norm_eps: it must be a number from 0 on"},
        {"{\"model_type\": \"llama\", " SIZES ", \"hidden_act\": \"relu\"}", "hidden_act: 'relu' is not supported"},
        {"{\"model_type\": \"llama\", " SIZES ", \"mlp_bias\": 1}", "mlp_bias: it must be true or false"},
        {"{\"model_type\": \"llama\", " SIZES ", \"rope_theta\": 1}", "rope_theta: it must be above 1"},
        {"{\"model_type\": \"llama\", " SIZES ", \"rope_scaling\": {\"type\": \"linear\"}}",
         "rope_scaling.factor: it must be there, and above 0"},
        {"{\"model_type\": \"llama\", " SIZES ", \"rope_scaling\": {\"type\": \"su\"}}",
         "rope_scaling.type: 'su' is not supported; it may be default, linear, dynamic, llama3 or yarn"},
        {"{\"model_type\": \"llama\", " SIZES ", \"rope_scaling\": {\"rope_type\": \"su\"}}",
         "rope_scaling.rope_type: 'su' is not supported"},
        {"{\"model_type\": \"llama\", " SIZES ", \"layer_types\": [1]}", "layer_types: it must hold texts"},
        {"{\"model_type\": \"qwen3\", " SIZES ", \"head_dim\": 4, \"sliding_window\": 8, \"layer_types\": "
         "[\"sliding_attention\", \"full_attention\"]}",
         "layer_types: the layers must all be full_attention or all be sliding_attention"},
        {"{\"model_type\": \"qwen2\", " SIZES ", \"use_sliding_window\": true, \"max_window_layers\": 1, "
         "\"sliding_window\": 8}",
         "max_window_layers: only some layers have a window"},
        {"{\"model_type\": \"gpt2\", \"vocab_size\": 4, \"n_embd\": 12, \"n_layer\": 1, \"n_head\": 5}",
         "n_head: 5 does not divide n_embd, which is 12"},
        {"{\"model_type\": \"gpt2\", \"vocab_size\": 4, \"n_embd\": 12, \"n_layer\": 1, \"n_head\": 4, "
         "\"scale_attn_by_inverse_layer_idx\": true}",
         "scale_attn_by_inverse_layer_idx: 'true' is not supported; it may be false"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_status(f, read_config(f->context, cases[i][0], NULL), REMAT_BAD_INPUT);
        expect_message(f, cases[i][1]);
    }
    char many[20000] = "{\"a\": 0";
    for (int i = 0; i < 600; i++)
        snprintf(many + strlen(many), 32, ", \"key%d\": %d", i, i);
    strcat(many, "}");
    expect_status(f, read_config(f->context, many, NULL), REMAT_BAD_INPUT);
    expect_message(f, "too many keys for a config.json");
}

static void settings_of_folders_are_checked(void **state)
{
    fixture *f = *state;
    scratch_write_text("config.json", configs[0]);
    expect_status(f, load(f->context, (const char *const[]){"model.length=33", NULL}), REMAT_INVALID);
    expect_message(f, "n_positions: 33 tokens are asked for, and it is 32");
    expect_status(f, load(f->context, (const char *const[]){"model.cache=33", NULL}), REMAT_INVALID);
    expect_message(f, "n_positions: 33 tokens are asked for, and it is 32");
    expect_ok(f, load(f->context, (const char *const[]){"model.cache=0", "model.pack=true", NULL}));
    expect_status(f, load(f->context, (const char *const[]){"model.length=x", NULL}), REMAT_INVALID);
    expect_message(f, "length: 'x'");
    expect_ok(f, load(f->context, NULL));
    scratch_write_text("config.json", configs[1]);
    expect_ok(f, load(f->context, (const char *const[]){"model.frozen=keep", NULL}));
    const char *many[1100];
    for (int i = 0; i < 1099; i++)
        many[i] = "model.batch_size=2";
    many[1099] = NULL;
    expect_status(f, load(f->context, many), REMAT_INVALID);
    expect_message(f, "more than 1024 settings");
    remove(scratch_path("config.json"));
    expect_status(f, load(f->context, NULL), REMAT_IO);
    expect_message(f, "config.json: not in the folder; give a model file, or a folder in Hugging Face's layout");
}

static remat_status load_once(remat_context *context, void *user)
{
    return load(context, user);
}

static void failed_allocations_are_survived(void **state)
{
    (void)state;
    static const char *const settings[] = {"model.length=8", "model.cache=16", NULL};
    for (int i = 0; i < CONFIGS; i++) {
        scratch_write_text("config.json", configs[i]);
        expect_failures_without_reserve_survived("a folder", load_once, (void *)(uintptr_t)settings, 100,
                                                 LESS_WHEN_SANITIZED(2000, 300));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(damaged_files_are_refused_by_name),
        FIXTURE_TEST(values_are_refused_by_key),
        FIXTURE_TEST(settings_of_folders_are_checked),
        FIXTURE_TEST(failed_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
