/* Short ways to say what a data source is opened with, for the tests of data. */
#ifndef TESTS_DATA_OPTIONS_H
#define TESTS_DATA_OPTIONS_H

#include "support/fixture.h"
#include "support/scratch_files.h"

#include "data/data.h"

static inline dataset_settings settings_of(uint32_t type)
{
    return (dataset_settings){.type = type, .samples = 1024, .folder = scratch_folder()};
}

static inline data_field reals(uint64_t values)
{
    return (data_field){.values = values};
}

static inline data_field ids(uint64_t values, uint64_t bound)
{
    return (data_field){.values = values, .dtype = REMAT_INT32, .bound = bound};
}

static inline data_options options_of(const dataset_settings *settings, data_field input, data_field labels,
                                      uint64_t batch)
{
    return (data_options){
        .settings = settings, .needs = {.input_count = 1, .inputs = {input}, .labels = labels}, .batch = batch};
}

static inline void expect_refused(fixture *f, const data_options *options, remat_status status, const char *message)
{
    data_source *source;
    expect_status(f, data_source_open(f->context, options, &source), status);
    assert_null(source);
    expect_message(f, message);
}

/* The same opening with every allocation failing once. */
static inline void expect_survives_no_memory(fixture *f, const data_options *options)
{
    data_source *source;
    uint64_t before = f->memory.calls;
    expect_ok(f, data_source_open(f->context, options, &source));
    uint64_t calls = f->memory.calls - before;
    data_source_close(source);
    for (uint64_t i = 1; i <= calls; i++) {
        f->memory.fail_at = f->memory.calls + i;
        expect_status(f, data_source_open(f->context, options, &source), REMAT_NO_MEMORY);
        assert_null(source);
    }
    f->memory.fail_at = 0;
}

#endif
