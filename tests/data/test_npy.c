#include "support/fixture.h"
#include "support/scratch_files.h"

#include "data/npy.h"

/* A file as NumPy would write it, but with any header. */
static const char *write_npy(unsigned version, const char *header, const void *data, size_t bytes)
{
    char file[4096];
    size_t length = strlen(header), at = version == 1 ? 10 : 12;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)version;
    file[7] = 0;
    for (size_t i = 0; i < at - 8; i++)
        file[8 + i] = (char)(length >> 8 * i);
    memcpy(file + at, header, length);
    memcpy(file + at + length, data, bytes);
    return scratch_write("a.npy", file, at + length + bytes);
}

static remat_status read_header(fixture *f, const char *path, npy_header *header)
{
    data_file file;
    remat_status status = data_file_open(f->context, path, 1 << 20, &file);
    if (status == REMAT_OK)
        status = npy_read_header(&file, header);
    data_file_close(&file);
    return status;
}

static void headers_of_all_versions_are_read(void **state)
{
    fixture *f = *state;
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n",
        "{\"shape\":(2,3),\"descr\":\"<f4\",\"fortran_order\":False}",
        " { 'fortran_order' : False , 'shape' : ( 2L , 3L , ) , 'descr' : '<f4' } ",
    };
    for (unsigned version = 1; version <= 3; version++)
        for (size_t i = 0; i < 3; i++) {
            npy_header header;
            expect_ok(f, read_header(f, write_npy(version, headers[i], data, sizeof data), &header));
            assert_int_equal(header.type, NPY_FLOAT32);
            assert_int_equal(header.rank, 2);
            assert_int_equal(header.dims[0], 2);
            assert_int_equal(header.dims[1], 3);
            assert_int_equal(header.values, 6);
            assert_int_equal(header.data_offset, (version == 1 ? 10 : 12) + strlen(headers[i]));
        }
    npy_header header;
    expect_ok(f, read_header(f, write_npy(1, "{'descr':'<f4','fortran_order':False,'shape':(6,)}", data, 24), &header));
    assert_int_equal(header.rank, 1);
    expect_ok(f, read_header(f, write_npy(1, "{'descr':'<f4','fortran_order':False,'shape':()}", data, 4), &header));
    assert_int_equal(header.rank, 0);
    expect_ok(f, read_header(f, write_npy(1, "{'descr':'<f8','fortran_order':False,'shape':(0,3)}", data, 0), &header));
    assert_int_equal(header.values, 0);
}

static void bad_headers_say_what_is_wrong(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *header, *message;
    } bad[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "'>f4' cannot be read"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", "little-endian float16 (<f2), float32 (<f4)"},
        {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }", "records"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", "ascontiguousarray"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", "True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "needs 12 bytes of values, the file has 8"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "needs 4 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "whole numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "2^63"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "2^63"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952,), }", "2^63"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,) 'x'", "is missing"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", "is missing"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}", "is missing in the shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", "parentheses"},
        {"{'descr': '<f4', 'shape': (2,), }", "is missing"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "each once"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", "nothing else"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "behind its '}'"},
        {"'descr'", "must start with '{'"},
        {"{descr: 1}", "in quotes"},
        {"{'descr'}", "':' is missing"},
        {"{'descr", "in quotes"},
        {"", "must start with '{'"},
    };
    npy_header header;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_status(f, read_header(f, write_npy(1, bad[i].header, "12345678", 8), &header), REMAT_BAD_INPUT);
        expect_message(f, bad[i].message);
        expect_message(f, "a.npy: ");
    }
    char many[400] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
    for (int i = 0; i < 33; i++)
        strcat(many, "1,");
    strcat(many, ")}");
    expect_status(f, read_header(f, write_npy(1, many, "1234", 4), &header), REMAT_BAD_INPUT);
    expect_message(f, "32 dimensions");
    expect_status(f, read_header(f, write_npy(4, "{}", "", 0), &header), REMAT_BAD_INPUT);
    expect_message(f, "version 4");
    expect_status(f, read_header(f, scratch_write("a.npy", "\x93NUMPY\1\0\xff\xff{", 11), &header), REMAT_BAD_INPUT);
    expect_message(f, "ends inside its header");
    expect_status(f, read_header(f, scratch_write("a.npy", "\x93NUMPY\2\0\xff\xff\xff\xff{", 13), &header),
                  REMAT_BAD_INPUT);
    expect_message(f, "no array needs");
    expect_status(f, read_header(f, scratch_write("a.npy", "", 0), &header), REMAT_BAD_INPUT);
    expect_message(f, "not a .npy file");
    expect_status(f, read_header(f, scratch_path("none.npy"), &header), REMAT_IO);
    expect_status(f, read_header(f, scratch_folder(), &header), REMAT_IO);
    expect_message(f, "not a regular file");
}

static void random_damage_never_crashes(void **state)
{
    fixture *f = *state;
    test_random random = {test_seed()};
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n";
    size_t length;
    char *good = scratch_read(write_npy(1, header, "123456781234567812345678", 24), &length);
    char *copy = malloc(length);
    for (int turn = 0; turn < LESS_WHEN_SANITIZED(4000, 1000); turn++) {
        memcpy(copy, good, length);
        for (uint64_t i = test_random_below(&random, 4); i != UINT64_MAX; i--)
            copy[test_random_below(&random, length)] = (char)test_random_next(&random);
        npy_header got;
        uint64_t cut = test_random_below(&random, 4) ? length : test_random_below(&random, length + 1);
        remat_status status = read_header(f, scratch_write("a.npy", copy, cut), &got);
        assert_true(status == REMAT_OK || status == REMAT_BAD_INPUT);
        if (status == REMAT_OK)
            assert_true(got.data_offset + got.values * npy_type_size(got.type) == cut);
    }
    free(good);
    free(copy);
}

static void values_are_converted(void **state)
{
    (void)state;
    float reals[3];
    int32_t ids[3];
    /* One byte further on: values in a file have no alignment. */
    char room[1 + 3 * sizeof(double)];
    static const double doubles[3] = {-1.5, 3e9, 1e300};
    memcpy(room + 1, doubles, sizeof doubles);
    npy_to_float(NPY_FLOAT64, room + 1, 2, reals);
    assert_true(reals[0] == (float)-1.5 && reals[1] == (float)3e9);
    static const int64_t wide[3] = {-5, INT64_MAX, INT64_MIN};
    memcpy(room + 1, wide, sizeof wide);
    npy_to_int32(NPY_INT64, room + 1, 3, ids);
    assert_true(ids[0] == -5 && ids[1] == INT32_MAX && ids[2] == INT32_MIN);
    static const unsigned char bytes[3] = {0, 128, 255};
    npy_to_int32(NPY_UINT8, bytes, 3, ids);
    assert_true(ids[0] == 0 && ids[1] == 128 && ids[2] == 255);
    npy_to_float(NPY_UINT8, bytes, 3, reals);
    assert_true(reals[2] == (float)255);
    static const int32_t numbers[3] = {-1, 0, INT32_MAX};
    npy_to_int32(NPY_INT32, numbers, 3, ids);
    assert_memory_equal(ids, numbers, sizeof ids);
    npy_to_float(NPY_INT32, numbers, 1, reals);
    assert_true(reals[0] == (float)-1);
    static const float floats[3] = {0.25f, -2, 3};
    npy_to_float(NPY_FLOAT32, floats, 3, reals);
    assert_true(reals[0] == (float)0.25 && reals[2] == (float)3);
}

static void every_rank_is_read(void **state)
{
    fixture *f = *state;
    static const int32_t data[1 << 5] = {0};
    uint64_t dims[NPY_MAX_RANK], values = 1;
    char shape[256] = "";
    for (uint32_t rank = 0; rank <= NPY_MAX_RANK; rank++) {
        char text[400];
        snprintf(text, sizeof text, "{'descr': '<i4', 'fortran_order': False, 'shape': (%s), }", shape);
        npy_header header;
        expect_ok(f, read_header(f, write_npy(1, text, data, values * sizeof data[0]), &header));
        assert_int_equal(header.type, NPY_INT32);
        assert_int_equal(header.rank, rank);
        assert_memory_equal(header.dims, dims, rank * sizeof dims[0]);
        if (rank == NPY_MAX_RANK)
            break;
        values *= dims[rank] = rank % 7 == 0 ? 2 : 1;
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%llu, ", (unsigned long long)dims[rank]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(headers_of_all_versions_are_read),
        FIXTURE_TEST(bad_headers_say_what_is_wrong),
        FIXTURE_TEST(random_damage_never_crashes),
        FIXTURE_TEST(values_are_converted),
        FIXTURE_TEST(every_rank_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
