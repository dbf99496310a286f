/* The check of UTF-8 against Jansson's. */
#include "fuzz/fuzz.h"

#include "base/utf8.h"
#include "support/jansson_verdict.h"

void fuzz_utf8(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    FUZZ_CHECK(remat_utf8_valid(text) == jansson_accepts_string(text));
    free(text);
}
