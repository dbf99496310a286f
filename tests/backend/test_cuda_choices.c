/* The text of a GPU's algorithms in a profile: what is written is read again, and nothing else is. And which kernels a GPU has.
 * Needs no GPU. */
#include "support/fixture.h"

#include "backend/cuda/cuda_choices.h"
#include "backend/cuda/cuda_table.h"

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    char text[4 * LONGEST_CHOICE];
    size_t used = cuda_choices_begin(130100, text);
    product_key keys[3];
    for (uint32_t i = 0; i < 3; i++) {
        keys[i] =
            (product_key){UINT64_MAX, i, 3 + i, 4, 5, 6, i & 1, i >> 1 & 1, 1, !i, 1 + i, 2, UINT32_MAX - i, i == 1};
        used += cuda_choice_write(&keys[i], (int)i + 5, text + used);
    }
    const char *at = text;
    uint64_t version;
    assert_true(cuda_choices_open(&at, &version));
    assert_int_equal(version, 130100);
    for (uint32_t i = 0; i < 3; i++) {
        product_key key;
        int choice;
        assert_true(cuda_choice_read(&at, &key, &choice));
        assert_memory_equal(&key, &keys[i], sizeof key);
        assert_int_equal(choice, i + 5);
    }
    assert_int_equal(*at, 0);
    assert_int_equal(at - text, used);
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const openings[] = {
        "", "cublas 1", "cublasLt", "cublasLt ", "cublasLt x", "cublasLt -1", "cublasLt 99999999999999999999"};
    static const char *const choices[] = {"",
                                          ";",
                                          " 1 2 3 4 5 6 7 8 9 10 11",
                                          "; 1 2 3 4 5 6 7 8 9 10",
                                          "; 1 2 3 4 5 6 32 8 9 10 11",
                                          "; 1 2 3 4 5 6 7 4294967296 9 10 11",
                                          "; 1 2 3 4 5 6 7 8 9 10 2147483648",
                                          "; 1 2 3 4 5 6 7 8 9 10 -1",
                                          "; 1 2 x 4 5 6 7 8 9 10 11",
                                          "; 1 2 99999999999999999999 4 5 6 7 8 9 10 11"};
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++) {
        const char *at = openings[i];
        uint64_t version;
        assert_false(cuda_choices_open(&at, &version));
    }
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) {
        const char *at = choices[i];
        product_key key;
        int choice;
        assert_false(cuda_choice_read(&at, &key, &choice));
    }
}

/* Products multiply by a derivative, in bf16, and never compute an activation. */
static void activations_are_no_part_of_products(void **state)
{
    (void)state;
    assert_non_null(cuda_table_find(OP_gemm, "bbb---"));
    assert_non_null(cuda_table_find(OP_gemm, "bbbb--"));
    assert_non_null(cuda_table_find(OP_gemm, "bbb-bb"));
    static const char *const none[] = {"bbb-b-", "bbbbb-", "bbbbbb", "fff-ff", "fff-f-", "bbf-ff", "bbf-bb"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_null(cuda_table_find(OP_gemm, none[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(activations_are_no_part_of_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
