/* How parameters are cut among ranks. */
#include "support/fixture.h"
#include "train/shard_map.h"

enum { COUNT = 6 };
static const uint64_t sizes[COUNT] = {1, 4096, 4097, 100000, 3 * 4096, 1000003};

/* Every value is on exactly one rank, cuts are at blocks, and ranks differ by no more than a block of values in all. */
static void check(remat_context *context, uint64_t ranks)
{
    network_parameter parameters[COUNT] = {0};
    uint64_t blocks[64] = {0};
    for (size_t i = 0; i < COUNT; i++)
        parameters[i].values = sizes[i];
    const remat_network network = {.context = context, .parameters = parameters, .parameter_count = COUNT};
    shard_map *map;
    assert_int_equal(shard_map_create(&network, ranks, &map), REMAT_OK);
    for (uint32_t p = 0; p < COUNT; p++) {
        uint64_t values = 0, most = 0;
        for (uint64_t r = 0; r < ranks; r++) {
            const shard_part part = shard_map_part(map, p, r);
            values += part.values;
            most = part.values > most ? part.values : most;
            blocks[r] += (part.values + SHARD_BLOCK - 1) / SHARD_BLOCK;
            assert_true(part.values == 0 || part.first % SHARD_BLOCK == 0);
            for (uint64_t other = 0; other < r; other++) {
                const shard_part before = shard_map_part(map, p, other);
                assert_true(part.first >= before.first + before.values || before.first >= part.first + part.values);
            }
        }
        assert_int_equal(values, sizes[p]);
        assert_int_equal(shard_map_most(map, p), most);
    }
    for (uint64_t r = 1; r < ranks; r++)
        assert_true(blocks[r] <= blocks[0] + 1 && blocks[0] <= blocks[r] + 1);
    shard_map_destroy(map);
}

static void test_cuts(void **state)
{
    fixture *f = *state;
    for (uint64_t ranks = 1; ranks <= 64; ranks++)
        check(f->context, ranks);
    shard_map_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(test_cuts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
