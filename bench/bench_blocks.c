/* What blocks save: a transformer (512 rows of width 512, 8 heads) of 2, 4, 6 and more layers with one block a layer,
 * and a perceptron, each with everything kept beside it. Memory is the arena: activations, their gradients, weight
 * gradients and workspaces. Times are medians of alternating steps. Usage: bench_blocks [--quick] */
#include <stdlib.h>
#include <string.h>

#include "measure.h"

enum { MOST_STEPS = 16 };

typedef struct variant {
    remat_model *model;
    remat_trainer *trainer;
    remat_trainer_figures figures;
    double seconds[MOST_STEPS];
} variant;

static void add(remat_context *context, remat_model *model, const char *type, const char *const *properties)
{
    measure_must(context, remat_model_add_layer(model, type, properties));
}

static const char *const parts[] = {"attn", "ln1", "ffn1", "act", "ffn2", "ln2"};

static void add_transformer_layer(remat_context *context, remat_model *model, int i, bool block)
{
    char text[6][40];
    const char *names[6];
    for (int p = 0; p < 6; p++) {
        snprintf(text[p], sizeof text[p], "name=layer%d_%s", i, parts[p]);
        names[p] = text[p] + strlen("name=");
    }
    add(context, model, "multi_head_attention", REMAT_PROPERTIES(text[0], "num_heads=8"));
    add(context, model, "layer_normalization", REMAT_PROPERTIES(text[1]));
    add(context, model, "fully_connected", REMAT_PROPERTIES(text[2], "unit=2048"));
    add(context, model, "activation", REMAT_PROPERTIES(text[3], "activation=gelu"));
    add(context, model, "fully_connected", REMAT_PROPERTIES(text[4], "unit=512"));
    add(context, model, "layer_normalization", REMAT_PROPERTIES(text[5]));
    if (block)
        measure_must(context, remat_model_add_block(
                                  model, REMAT_PROPERTIES(names[0], names[1], names[2], names[3], names[4], names[5])));
}

static remat_model *transformer(remat_context *context, int layers, bool blocks)
{
    remat_model *model;
    measure_must(context, remat_model_create(context, &model));
    add(context, model, "input", REMAT_PROPERTIES("name=input", "input_shape=1:512:512"));
    for (int i = 0; i < layers; i++)
        add_transformer_layer(context, model, i, blocks);
    add(context, model, "mse", REMAT_PROPERTIES("name=loss"));
    return model;
}

static remat_model *perceptron(remat_context *context, int unused, bool blocks)
{
    (void)unused;
    remat_model *model;
    measure_must(context, remat_model_create(context, &model));
    add(context, model, "input", REMAT_PROPERTIES("name=input", "input_shape=1:1:784"));
    static const char *const units[] = {"unit=512", "unit=256", "unit=128"};
    for (int i = 0; i < 3; i++) {
        char fc[24], act[24];
        snprintf(fc, sizeof fc, "name=fc%d", i + 1);
        snprintf(act, sizeof act, "name=act%d", i + 1);
        add(context, model, "fully_connected", REMAT_PROPERTIES(fc, units[i]));
        add(context, model, "activation", REMAT_PROPERTIES(act, "activation=relu"));
    }
    add(context, model, "fully_connected", REMAT_PROPERTIES("name=output", "unit=10"));
    add(context, model, "mse", REMAT_PROPERTIES("name=loss"));
    if (blocks)
        measure_must(context, remat_model_add_block(model, REMAT_PROPERTIES("fc1", "act1", "fc2", "act2")));
    return model;
}

typedef remat_model *(*model_fn)(remat_context *context, int layers, bool blocks);

static void open_variant(remat_context *context, model_fn make, int layers, bool blocks, const char *batch, variant *v)
{
    v->model = make(context, layers, blocks);
    measure_must(context, remat_model_set(v->model, REMAT_PROPERTIES(batch)));
    measure_must(context, remat_model_set_optimizer(v->model, "adam", REMAT_PROPERTIES("learning_rate=0.001")));
    measure_must(context, remat_model_set_dataset(v->model, "random", REMAT_PROPERTIES("samples=64")));
    measure_must(context, remat_model_compile(v->model));
    remat_train_options options;
    remat_train_options_init(&options);
    measure_must(context, remat_trainer_create(v->model, &options, &v->trainer));
    remat_trainer_get_figures(v->trainer, &v->figures);
}

static void close_variant(variant *v)
{
    remat_trainer_destroy(v->trainer);
    remat_model_destroy(v->model);
}

/* Steps of both in turns, so that both see the same machine; losses must be the same bits. */
static void take_steps(remat_context *context, variant *kept, variant *blocks, int steps)
{
    for (int i = -1; i < steps; i++) {
        remat_step_result a, b;
        measure_must(context, remat_trainer_step(kept->trainer, &a));
        measure_must(context, remat_trainer_step(blocks->trainer, &b));
        if (a.loss != b.loss) {
            fprintf(stderr, "bench_blocks: step %d: losses %.17g and %.17g differ\n", i, a.loss, b.loss);
            exit(1);
        }
        if (i >= 0) {
            kept->seconds[i] = a.seconds;
            blocks->seconds[i] = b.seconds;
        }
    }
}

static void measure(remat_context *context, const char *name, model_fn make, int layers, const char *batch, int steps)
{
    variant kept = {0}, blocks = {0};
    open_variant(context, make, layers, false, batch, &kept);
    open_variant(context, make, layers, true, batch, &blocks);
    take_steps(context, &kept, &blocks, steps);
    double all = (double)kept.figures.arena_bytes, with = (double)blocks.figures.arena_bytes;
    printf("%-24s %10.1f %10.1f %8.1f %%", name, all / 1e6, with / 1e6, 100 * (1 - with / all));
    double a = measure_median(kept.seconds, (size_t)steps), b = measure_median(blocks.seconds, (size_t)steps);
    printf(" %10.1f %10.1f %+8.1f %%\n", 1000 * a, 1000 * b, 100 * (b / a - 1));
    if (blocks.figures.remark[0])
        printf("    %s\n", blocks.figures.remark);
    close_variant(&kept);
    close_variant(&blocks);
}

int main(int argc, char **argv)
{
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    int steps = quick ? 1 : 9;
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK)
        return 1;
    printf("%-24s %10s %10s %10s %10s %10s %10s\n", "", "all kept", "in blocks", "less", "all kept", "in blocks",
           "more");
    printf("%-24s %10s %10s %10s %10s %10s %10s\n", "", "MB", "MB", "", "ms/step", "ms/step", "");
    for (int layers = 2; layers <= (quick ? 2 : 12); layers += layers < 6 ? 2 : 6) {
        char name[40];
        snprintf(name, sizeof name, "transformer, %d layers", layers);
        measure(context, name, transformer, layers, "batch_size=1", steps);
    }
    measure(context, "perceptron, one block", perceptron, 0, "batch_size=32", steps);
    remat_context_destroy(context);
    return 0;
}
