/* The rows of the tables: every operation has a kernel, and kernels are found by the types of the tensors. */
#include "support/kernel_compare.h"

static size_t all_tables(const kernel_table *tables[8])
{
    size_t count = 0;
    tables[count++] = kernels_reference();
    for (const kernel_table *const *table = kernel_tables(); *table; table++)
        tables[count++] = *table;
    return count;
}

/* Whether a row computes in the element type of this letter: it has no other. */
static bool computes_in(const kernel_row *row, char letter)
{
    for (const char *type = row->types; *type; type++)
        if (*type != letter && *type != 'i' && *type != 'u')
            return false;
    return true;
}

static const kernel_row *row_of(const kernel_table *table, operation op, char letter)
{
    for (size_t i = 0; i < table->row_count; i++)
        if (table->rows[i].op == op && computes_in(&table->rows[i], letter))
            return &table->rows[i];
    return NULL;
}

static void every_operation_has_a_kernel(void **state)
{
    (void)state;
    const kernel_table *tables[8];
    for (size_t t = all_tables(tables); t-- > 0;)
        for (int op = 0; op < OPERATION_COUNT; op++) {
            if (!row_of(tables[t], (operation)op, 'f'))
                fail_msg("%s has no kernel for %s in fp32", tables[t]->name, operation_table[op].name);
            if (tables[t] == kernels_reference() && !row_of(tables[t], (operation)op, 'd'))
                fail_msg("the reference has no kernel for %s in fp64", operation_table[op].name);
        }
}

/* A letter for each tensor, no two rows alike, and every row is found: also where tensors are not there. */
static void every_row_is_found(void **state)
{
    (void)state;
    const kernel_table *tables[8];
    for (size_t t = all_tables(tables); t-- > 0;)
        for (size_t i = 0; i < tables[t]->row_count; i++) {
            const kernel_row *row = &tables[t]->rows[i];
            char types[OPERATION_MAX_TENSORS + 1];
            assert_int_equal(strlen(row->types), operation_table[row->op].tensors);
            assert_ptr_equal(kernel_find(tables[t], row->op, row->types), row);
            for (size_t k = 0; k < i; k++)
                assert_false(tables[t]->rows[k].op == row->op && strcmp(tables[t]->rows[k].types, row->types) == 0);
            for (size_t k = 0; row->types[k]; k++) {
                strcpy(types, row->types);
                types[k] = '-';
                assert_non_null(kernel_find(tables[t], row->op, types));
            }
        }
}

static void other_types_have_none(void **state)
{
    (void)state;
    const kernel_table *tables[8];
    for (size_t t = all_tables(tables); t-- > 0;) {
        static const char *const sums[] = {"",    "f",   "ff",  "ffff", "fff-", "ffd",
                                           "ffi", "ufu", "hhh", "bbf",  "FFF",  "f f"};
        for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
            assert_null(kernel_find(tables[t], OP_add, sums[i]));
        assert_null(kernel_find(tables[t], OP_gather, "fff"));
        assert_null(kernel_find(tables[t], OP_gather, "uff"));
        assert_null(kernel_find(tables[t], OP_dropout, "fff"));
        assert_null(kernel_find(tables[t], OP_clip, "f"));
        assert_null(kernel_find(tables[t], OPERATION_COUNT, "fff"));
        assert_true((kernel_find(tables[t], OP_add, "ddd") != NULL) == (tables[t] == kernels_reference()));
        assert_ptr_equal(kernel_find(tables[t], OP_add, "---"), kernel_find(tables[t], OP_add, "fff"));
    }
}

static void workspaces_follow_from_sizes_and_types(void **state)
{
    (void)state;
    const tensor_ref single = {NULL, REMAT_FP32}, twice = {NULL, REMAT_FP64};
    const operation_window window = {5, 2, 8, 8, 3, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    const uint64_t weights = 3 * 2 * 9 + 3; /* and the bias, for each of five images */
    assert_int_equal(kernel_workspace(OP_convolve, &(op_convolve){.x = single, .window = window}), 5 * weights * 4);
    assert_int_equal(kernel_workspace(OP_convolve, &(op_convolve){.x = twice, .window = window}), 5 * weights * 8);
    assert_int_equal(
        kernel_workspace(OP_convolve_backward_weight, &(op_convolve_backward_weight){.x = single, .window = window}),
        5 * weights * 4);
    assert_int_equal(
        kernel_workspace(OP_convolve_backward_input, &(op_convolve_backward_input){.dy = single, .window = window}),
        5 * weights * 4);
    assert_int_equal(
        kernel_workspace(OP_normalize_backward, &(op_normalize_backward){.x = single, .rows = 40, .columns = 7}),
        3 * 2 * 7 * 4);
    op_attention_backward attention = {.q = twice, .batch = 9, .heads = 2, .steps = 5, .size = 4, .row = 24};
    assert_int_equal(kernel_workspace(OP_attention_backward, &attention), 0);
    attention.accumulate = true;
    assert_int_equal(kernel_workspace(OP_attention_backward, &attention), 5 * 24 * 8);
    assert_int_equal(kernel_workspace(OP_add, &(op_add){.count = 100}), 0);
    assert_int_equal(kernel_workspace(OP_gemm, &(op_gemm){.m = 100, .n = 100, .k = 100}), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_a_kernel),
        cmocka_unit_test(every_row_is_found),
        cmocka_unit_test(other_types_have_none),
        cmocka_unit_test(workspaces_follow_from_sizes_and_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
