/* How data becomes numbers, as weights files have it. What was read is written, and read again as the same. */
#include "fuzz/fuzz.h"

#include "base/alloc.h"
#include "data/data_encoding.h"

/* Reads a text, and writes what it says; NULL where it is refused. */
static char *read_and_write(remat_context *context, const char *text)
{
    data_encoding encoding;
    char *written = NULL;
    data_encoding_begin(&encoding, context);
    if (fuzz_accepted(context, data_encoding_read(&encoding, text, "fuzz")))
        fuzz_accepted(context, data_encoding_write(&encoding, &written));
    data_encoding_end(&encoding);
    return written;
}

void fuzz_data_encoding(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    char *text = fuzz_text(data, size), *first = read_and_write(context, text);
    if (first) {
        char *second = read_and_write(context, first);
        FUZZ_CHECK(!second || strcmp(first, second) == 0);
        remat_text_release(context, second);
    }
    remat_text_release(context, first);
    free(text);
    fuzz_end(context);
}
