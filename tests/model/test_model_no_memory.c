/* Models while memory runs out: each text, each list and each layer may be the one that finds none. And adapters whose
 * configuration is damaged. */
#include "support/damaged_text.h"
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include <remat/train.h>

static const char everything[] =
    "[Model]\nname = all\nbatch_size = 2\nprecision = bf16\nbudget = 1GiB\n[Optimizer : adamw]\nlearning_rate = 0.01\n"
    "[Dataset : npy]\ninputs = none.npy\nlabels = none.npy\n"
    "[in : input]\ninput_shape = 1:4:8\n"
    "[first : fully_connected]\nunit = 8\n"
    "[Repeat group]\ncount = 2\n[a{i} : fully_connected]\nunit = 8\nactivation = relu\n"
    "[b{i} : addition]\ninput_layers = a{i}, {in}\nblock = pair{i}\n[End]\n"
    "[heads : multi_head_attention]\nnum_heads = 2\n[other : multi_head_attention]\ninput_layers = heads, "
    "first\nnum_heads = 2\n"
    "[shared : fully_connected]\nunit = 8\nshared_from = first\nbias = false\ntrainable = true\n"
    "[flat : flatten]\n[out : fully_connected]\nunit = 3\nprecision = fp32\n[loss : cross_entropy]\nlabel_smoothing = "
    "0.1\n"
    "[Block tail]\nlayers = flat .. out\n[Block heads]\nlayers = heads\n";

/* Only what a plan needs: no data is read. */
static remat_status plan(remat_model *model)
{
    remat_train_options options;
    remat_trainer *trainer;
    remat_train_options_init(&options);
    options.plan_only = true;
    options.threads = 1;
    options.strategy = "none";
    remat_status status = remat_trainer_create(model, &options, &trainer);
    remat_trainer_destroy(trainer);
    return status;
}

static remat_status read_model(remat_context *context, void *user)
{
    remat_model *model;
    (void)user;
    FILE *stream = stream_of(everything, strlen(everything));
    remat_status status = remat_model_read_with(
        context, stream, "folder/model.ini",
        (const char *const[]){"optimizer.learning_rate=0.1", "model.train=out*", "first.bias=false", NULL}, &model);
    fclose(stream);
    if (status != REMAT_OK)
        assert_null(model);
    FLOW(status, plan(model));
    remat_model_destroy(model);
    return status;
}

static remat_status call_model(remat_context *context, void *user)
{
    remat_model *model = NULL;
    (void)user;
    remat_status status = remat_model_create(context, &model);
    FLOW(status, remat_model_add_layer(model, "input", REMAT_PROPERTIES("name=in", "input_shape=6")));
    FLOW(status, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("unit=4", "block=a")));
    FLOW(status, remat_model_add_layer(model, "activation", REMAT_PROPERTIES(" activation = relu")));
    FLOW(status, remat_model_add_layer(model, "fully_connected", REMAT_PROPERTIES("name=out", "unit=2")));
    FLOW(status, remat_model_add_layer(model, "mse", REMAT_PROPERTIES("name=loss")));
    FLOW(status, remat_model_add_block(model, (const char *const[]){"out", NULL}));
    FLOW(status, remat_model_set(model, REMAT_PROPERTIES("batch_size=2", "clip_norm=1")));
    FLOW(status, remat_model_set_optimizer(model, "sgd", REMAT_PROPERTIES("momentum=0.9")));
    FLOW(status, remat_model_set_dataset(model, "npy", REMAT_PROPERTIES("inputs=a.npy", "labels=b.npy")));
    FLOW(status, remat_model_compile(model));
    FLOW(status, remat_model_set(model, REMAT_PROPERTIES("batch_size=3")));
    remat_model_destroy(model);
    return status;
}

static const char config[] =
    "{\"model_type\": \"llama\", \"vocab_size\": 20, \"hidden_size\": 8, \"intermediate_size\": 8, "
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"max_position_embeddings\": 16}";
static const char adapter[] =
    "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 6.5, \"lora_dropout\": 0.0, \"use_rslora\": "
    "false, \"use_dora\": null, \"target_modules\": [\"q_proj\", \"v_proj\"]}\n";

static remat_status load_folder(remat_context *context, void *user)
{
    remat_model *model;
    const char *const settings[] = {"model.length=4", user, "dataset.type=random", NULL};
    remat_status status = remat_model_load_with(context, scratch_folder(), settings, &model);
    if (status != REMAT_OK)
        assert_null(model);
    FLOW(status, plan(model));
    remat_model_destroy(model);
    return status;
}

static void failed_allocations_are_survived(void **state)
{
    fixture *f = *state;
    const uint64_t most = LESS_WHEN_SANITIZED(400, 50);
    expect_ok(f, read_model(f->context, NULL));
    expect_failures_without_reserve_survived("a file", read_model, NULL, 300, most);
    expect_failures_without_reserve_survived("calls", call_model, NULL, 100, most);
    char setting[400];
    snprintf(setting, sizeof setting, "model.adapter=%s", scratch_folder());
    scratch_write_text("config.json", config);
    scratch_write_text("adapter_config.json", adapter);
    expect_failures_without_reserve_survived("an adapter", load_folder, setting, 200, most);
    char lora[] = "model.lora=rank=2,targets=q_proj";
    expect_failures_without_reserve_survived("lora", load_folder, lora, 200, most);
}

/* ---- adapters ---- */

static remat_status read_adapter(remat_context *context, const char *text, void *user)
{
    scratch_write_text("adapter_config.json", text);
    remat_status status = load_folder(context, user);
    return status == REMAT_INVALID ? REMAT_BAD_INPUT : status; /* targets that the model does not have */
}

static void damaged_adapters_are_refused(void **state)
{
    fixture *f = *state;
    char setting[400];
    snprintf(setting, sizeof setting, "model.adapter=%s", scratch_folder());
    scratch_write_text("config.json", config);
    expect_ok(f, read_adapter(f->context, adapter, setting));
    assert_true(expect_beginnings_judged(f, adapter, read_adapter, setting, "") >= strlen(adapter) - 2);
    assert_true(expect_other_values_judged(f, adapter, read_adapter, setting, "") > 60);
    static const char *const cases[][2] = {
        {"{\"target_modules\": \"q_proj\"}", "adapter_config.json:1: r: it is missing"},
        {"{\"r\": 2}", "target_modules: it is missing"},
        {"{\"r\": 0}", "r: it must be at least 1"},
        {"{\"r\": 2, \"lora_dropout\": 1}", "lora_dropout: it must be a number from 0 on"},
        {"{\"r\": 2, \"lora_alpha\": \"x\"}", "lora_alpha: it must be a number from 0 on"},
        {"{\"peft_type\": \"IA3\"}", "peft_type: adapters must be of the type LORA"},
        {"{\"use_dora\": true}", "use_dora: this variant of LoRA is not supported"},
        {"{\"r\": 2, \"target_modules\": \"q_proj\"} x", "'x' where the end of the text should stand"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_status(f, read_adapter(f->context, cases[i][0], setting), REMAT_BAD_INPUT);
        expect_message(f, cases[i][1]);
    }
    expect_ok(f, read_adapter(f->context, "{\"r\": 2, \"target_modules\": \"q_proj\"}", setting));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(failed_allocations_are_survived),
        FIXTURE_TEST(damaged_adapters_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
