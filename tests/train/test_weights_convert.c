/* Weights under PyTorch's names and back, with the layers whose names differ; and what goes wrong on the way. */
#include "support/fixture.h"
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include "data/safetensors.h"

static const char text[] = "[Model]\nbatch_size = 2\n[Dataset : random]\nsamples = 4\n"
                           "[a : input]\ninput_shape = 6:8\n[b : input]\ninput_shape = 5:WIDTH\n"
                           "[self : multi_head_attention]\ninput_layers = a\nnum_heads = 2\n"
                           "[norm : layer_normalization]\n"
                           "[cross : multi_head_attention]\ninput_layers = norm, b\nnum_heads = 2\n"
                           "[rnn : lstm]\nunit = 3\n[bn : batch_normalization]\n[loss : mse]\n";

static remat_model *load(remat_context *context, char width, remat_status *status)
{
    char changed[sizeof text];
    remat_model *model = NULL;
    memcpy(changed, text, sizeof text);
    char *at = strstr(changed, "WIDTH");
    memset(at, ' ', 5);
    *at = width;
    *status = remat_model_load(context, scratch_write_text("convert.ini", changed), &model);
    return model;
}

static remat_status make(remat_model *model, const char *path)
{
    remat_train_options options;
    remat_train_options_init(&options);
    options.threads = 1;
    remat_trainer *trainer;
    remat_status status = remat_trainer_create(model, &options, &trainer);
    FLOW(status, remat_trainer_save(trainer, path, false));
    remat_trainer_destroy(trainer);
    return status;
}

static remat_status convert(remat_model *model, const char *from, const char *to, bool to_torch)
{
    remat_convert_options options;
    remat_convert_options_init(&options);
    options.to_torch = to_torch;
    return remat_weights_convert(model, from, to, &options);
}

/* The shape of a tensor, and that it is there. */
static void expect_tensor(fixture *f, const char *path, const char *name, uint64_t rows, uint64_t columns)
{
    safetensors *file;
    expect_ok(f, safetensors_open(f->context, path, &file));
    const safetensors_tensor *tensor = safetensors_find(file, name);
    if (!tensor)
        fail_msg("%s has no %s", path, name);
    assert_int_equal(tensor->rank, columns ? 2 : 1);
    assert_int_equal(tensor->dims[0], rows);
    if (columns)
        assert_int_equal(tensor->dims[1], columns);
    safetensors_close(file);
}

static void names_go_both_ways(void **state)
{
    fixture *f = *state;
    char ours[300], theirs[300], back[300];
    snprintf(ours, sizeof ours, "%s", scratch_path("ours.safetensors"));
    snprintf(back, sizeof back, "%s", scratch_path("back.safetensors"));
    for (int i = 0; i < 4; i++) {
        remat_status status;
        const char width = i < 2 ? '8' : '6';
        remat_model *model = load(f->context, width, &status);
        expect_ok(f, status);
        snprintf(theirs, sizeof theirs, "%s", scratch_path(i % 2 ? "theirs.pt" : "theirs.safetensors"));
        expect_ok(f, make(model, ours));
        expect_ok(f, convert(model, ours, theirs, true));
        expect_tensor(f, theirs, "self.in_proj_weight", 24, 8);
        expect_tensor(f, theirs, "self.out_proj.bias", 8, 0);
        expect_tensor(f, theirs, "norm.weight", 8, 0);
        expect_tensor(f, theirs, "cross.in_proj_bias", 24, 0);
        if (width == '8') {
            expect_tensor(f, theirs, "cross.in_proj_weight", 24, 8);
        } else {
            expect_tensor(f, theirs, "cross.q_proj_weight", 8, 8);
            expect_tensor(f, theirs, "cross.k_proj_weight", 8, 6);
            expect_tensor(f, theirs, "cross.v_proj_weight", 8, 6);
        }
        expect_tensor(f, theirs, "rnn.weight_ih_l0", 12, 8);
        expect_tensor(f, theirs, "bn.running_var", 3, 0);
        expect_ok(f, convert(model, theirs, back, false));
        size_t before, after;
        char *first = scratch_read(ours, &before), *second = scratch_read(back, &after);
        assert_int_equal(before, after);
        assert_memory_equal(first, second, before);
        free(first);
        free(second);
        remat_model_destroy(model);
    }
}

static remat_status flow(remat_context *context, void *user)
{
    (void)user;
    char ours[300], theirs[300];
    snprintf(ours, sizeof ours, "%s", scratch_path("ours.safetensors"));
    snprintf(theirs, sizeof theirs, "%s", scratch_path("theirs.pt"));
    remat_status status;
    remat_model *model = load(context, '6', &status);
    FLOW(status, convert(model, ours, theirs, true));
    FLOW(status, convert(model, theirs, scratch_path("back.safetensors"), false));
    remat_convert_options options;
    remat_convert_options_init(&options);
    options.to_torch = true;
    options.names_path = scratch_path("names");
    FLOW(status, remat_weights_convert(model, ours, theirs, &options));
    remat_model_destroy(model);
    return status;
}

static void failures_of_memory_are_survived(void **state)
{
    fixture *f = *state;
    remat_status status;
    remat_model *model = load(f->context, '6', &status);
    expect_ok(f, status);
    scratch_write_text("names", "norm = n.0\n* = model.*\n");
    expect_ok(f, make(model, scratch_path("ours.safetensors")));
    remat_model_destroy(model);
    expect_failures_survived("convert", flow, NULL, 100, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(names_go_both_ways),
        FIXTURE_TEST(failures_of_memory_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
