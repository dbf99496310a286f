#include "support/cases.h"

#include "store/chunk_hash.h"

#define MOST (5 * CHUNK_HASH_BYTES + 123)

static void fill(unsigned char *bytes, size_t count)
{
    test_random random = {42};
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)test_random_next(&random);
}

static void counts_chunks(void **state)
{
    (void)state;
    assert_int_equal(chunk_hash_count(0), 0);
    assert_int_equal(chunk_hash_count(1), 1);
    assert_int_equal(chunk_hash_count(4096), 1);
    assert_int_equal(chunk_hash_count(4097), 2);
    assert_int_equal(chunk_hash_count(SIZE_MAX), SIZE_MAX / 4096 + 1);
}

static void same_bytes_same_hashes(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 4, 240, 4095, 4096, 4097, 8192, MOST};
    unsigned char *bytes = malloc(MOST + 1);
    fill(bytes, MOST);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t hashes[8] = {0};
        size_t count = chunk_hash_count(sizes[i]);
        hashes[count] = 7; /* must stay */
        chunk_hash_make(bytes, sizes[i], hashes);
        assert_int_equal(hashes[count], 7);
        assert_int_equal(chunk_hash_differs(bytes, sizes[i], hashes), count);
        /* The same bytes elsewhere, at an odd address. */
        unsigned char *moved = malloc(MOST + 2);
        memcpy(moved + 1, bytes, sizes[i]);
        assert_int_equal(chunk_hash_differs(moved + 1, sizes[i], hashes), count);
        free(moved);
    }
    free(bytes);
}

static void every_flipped_bit_is_found_in_its_chunk(void **state)
{
    (void)state;
    unsigned char *bytes = malloc(MOST);
    uint64_t hashes[8];
    fill(bytes, MOST);
    chunk_hash_make(bytes, MOST, hashes);
    for (size_t bit = 0; bit < MOST * 8; bit += bit < 4096 * 8 ? 1 : 97) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(chunk_hash_differs(bytes, MOST, hashes), bit / 8 / 4096);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    /* Of several, the first. */
    bytes[2 * 4096] ^= 1;
    bytes[4 * 4096] ^= 1;
    assert_int_equal(chunk_hash_differs(bytes, MOST, hashes), 2);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_chunks),
        cmocka_unit_test(same_bytes_same_hashes),
        cmocka_unit_test(every_flipped_bit_is_found_in_its_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
