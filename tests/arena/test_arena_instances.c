/* The published instances that lie beside the project, where they do: each has a placement within 1 MiB. */
#include "arena/lifetimes_csv.h"
#include "support/lifetime_rows.h"

#include <glob.h>

static const char pattern[] = "../shared/data/minimalloc/*.csv";

static void solve(fixture *f, const char *path)
{
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    remat_lifetime_table *table;
    remat_arena_result result;
    expect_ok(f, remat_lifetime_table_read(f->context, stream, path, &table));
    fclose(stream);
    size_t count = remat_lifetime_table_count(table);
    assert_in_range(count, 1, 100000);
    remat_status status = rows_place(f, table->rows, count, (row_options){1, 1048576, 1000000}, &result);
    if (status != REMAT_OK)
        print_error("%s is not solved\n", path);
    expect_ok(f, status);
    remat_lifetime_table_destroy(table);
}

static void published_instances_fit(void **state)
{
    fixture *f = *state;
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        solve(f, found.gl_pathv[i]);
    globfree(&found);
}

int main(void)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) {
        print_message("skipped: there is no %s\n", pattern);
        return TEST_SKIPPED;
    }
    globfree(&found);
    const struct CMUnitTest tests[] = {FIXTURE_TEST(published_instances_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
