/* Lines of samples. A label is the input that follows, or -1, and never reaches into the next sample. */
#include "fuzz/fuzz.h"

#include <remat/tokenizer.h>

enum { LENGTH = 16 };

static void check_rows(const remat_samples *samples)
{
    remat_samples_figures figures;
    remat_samples_figures_get(samples, &figures);
    FUZZ_CHECK(figures.rows > 0 && figures.learned > 0 && figures.truncated + figures.dropped <= 2 * figures.samples);
    uint64_t learned = 0;
    for (uint64_t i = 0; i < figures.rows; i++) {
        remat_samples_row row;
        FUZZ_CHECK(remat_samples_row_get(samples, i, &row) == REMAT_OK);
        for (int t = 0; t < LENGTH; t++) {
            learned += row.labels[t] >= 0;
            FUZZ_CHECK(row.segments[t] >= 0 || row.labels[t] == -1);
            if (t + 1 < LENGTH && row.labels[t] >= 0 && row.segments[t + 1] == row.segments[t])
                FUZZ_CHECK(row.labels[t] == row.ids[t + 1]);
        }
    }
    FUZZ_CHECK(learned == figures.learned);
}

void fuzz_samples(const uint8_t *data, size_t size)
{
    static const char tokenizer_text[] =
        "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"?\": 3}, \"merges\": [\"a b\"], "
        "\"unk_token\": \"?\"}}";
    remat_context *context = fuzz_begin();
    FILE *stream = fuzz_stream(tokenizer_text, sizeof tokenizer_text - 1);
    remat_tokenizer *tokenizer;
    remat_samples *samples;
    FUZZ_CHECK(remat_tokenizer_read(context, stream, "text", &tokenizer) == REMAT_OK);
    fclose(stream);
    remat_samples_options options;
    remat_samples_options_init(&options);
    options.length = LENGTH;
    options.pack = size % 2 == 0;
    remat_status status = remat_samples_load(tokenizer, fuzz_file(0, data, size), &options, &samples);
    FUZZ_CHECK((samples != NULL) == (status == REMAT_OK));
    if (fuzz_accepted(context, status))
        check_rows(samples);
    remat_samples_destroy(samples);
    remat_tokenizer_destroy(tokenizer);
    fuzz_end(context);
}
