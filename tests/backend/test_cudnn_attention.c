/* Attention by cuDNN where cuDNN is not there, as on most machines. bench/bench_cudnn_attention.cu checks what it computes. */
#include "support/fixture.h"

#include "backend/cuda/cudnn_attention.h"
#include "backend/cuda/cudnn_library.h"

static void absent_takes_nothing(void **state)
{
    (void)state;
    const op_attention forward = {.q = {NULL, REMAT_BF16},
                                  .batch = 2,
                                  .heads = 2,
                                  .steps = 128,
                                  .size = 64,
                                  .row = 384,
                                  .out_row = 128,
                                  .keys = 128,
                                  .key_row = 384,
                                  .causal = true};
    const op_attention_backward backward = {.q = {NULL, REMAT_BF16},
                                            .batch = 2,
                                            .heads = 2,
                                            .steps = 128,
                                            .size = 64,
                                            .row = 384,
                                            .out_row = 128,
                                            .keys = 128,
                                            .key_row = 384,
                                            .causal = true};
    assert_false(cudnn_attention_takes(NULL, &forward));
    assert_false(cudnn_attention_backward_takes(NULL, &backward));
    assert_int_equal(cudnn_attention_workspace(NULL, &forward), 0);
    assert_int_equal(cudnn_attention_backward_workspace(NULL, &backward), 0);
    cudnn_attention_close(NULL);
}

static void opening_is_no_failure(void **state)
{
    fixture *f = *state;
    cudnn_attention *fused = (cudnn_attention *)f; /* must be set */
    expect_ok(f, cudnn_attention_open(f->context, 90, 0, &fused));
    assert_string_equal(remat_context_message(f->context), "");
    if (fused)
        assert_int_equal(cudnn_attention_version(fused), cudnn_library_version());
    cudnn_attention_close(fused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_takes_nothing),
        FIXTURE_TEST(opening_is_no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
