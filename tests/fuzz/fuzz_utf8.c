/* The check of UTF-8 against Jansson's, and texts as they are shown. The first byte is the room for that. */
#include "fuzz/fuzz.h"

#include "base/utf8.h"
#include "support/jansson_verdict.h"

void fuzz_utf8(const uint8_t *data, size_t size)
{
    char shown[256], again[256];
    size_t room = fuzz_take(&data, &size);
    char *text = fuzz_text(data, size);
    FUZZ_CHECK(remat_utf8_valid(text) == jansson_accepts_string(text));
    memset(shown, 'x', sizeof shown);
    size_t length = remat_text_escape(text, shown, room);
    FUZZ_CHECK(length >= strlen(text) && shown[room] == 'x');
    if (room) {
        FUZZ_CHECK(strlen(shown) <= length && remat_utf8_valid(shown));
        FUZZ_CHECK(room <= length || strlen(shown) == length);
        FUZZ_CHECK(remat_text_escape(shown, again, sizeof again) == strlen(shown) && strcmp(shown, again) == 0);
    }
    free(text);
}
