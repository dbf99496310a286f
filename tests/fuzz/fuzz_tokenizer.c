/* A tokenizer.json. What is read encodes any text, and decodes what it encoded; the file's own text is the text. */
#include "fuzz/fuzz.h"

#include "base/utf8.h"

#include <remat/tokenizer.h>

static void use(remat_context *context, remat_tokenizer *tokenizer, const char *text, size_t bytes)
{
    const int32_t *ids;
    const char *decoded;
    size_t count, length;
    remat_status status = remat_tokenizer_encode(tokenizer, text, bytes, 1, &ids, &count);
    if (!fuzz_accepted(context, status))
        return;
    const uint32_t *starts = remat_tokenizer_starts(tokenizer);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(starts[i] <= bytes && (i == 0 || starts[i - 1] <= starts[i]));
    int32_t *copy = malloc((count + 1) * sizeof *copy);
    FUZZ_CHECK(copy);
    if (count)
        memcpy(copy, ids, count * sizeof *copy);
    status = remat_tokenizer_decode(tokenizer, copy, count, 1, &decoded, &length);
    if (fuzz_accepted(context, status) && strlen(decoded) == length)
        FUZZ_CHECK(remat_utf8_valid(decoded));
    free(copy);
}

void fuzz_tokenizer(const uint8_t *data, size_t size)
{
    static const char sentence[] = " It's 1234 \xce\xb1\xcc\x81 \xe2\x96\x81\xf0\x9f\x98\x80\n\n  x<s>";
    remat_context *context = fuzz_begin();
    FILE *stream = fuzz_stream(data, size);
    remat_tokenizer *tokenizer;
    remat_status status = remat_tokenizer_read(context, stream, "text", &tokenizer);
    fclose(stream);
    FUZZ_CHECK((tokenizer != NULL) == (status == REMAT_OK));
    if (fuzz_accepted(context, status)) {
        use(context, tokenizer, sentence, sizeof sentence - 1);
        use(context, tokenizer, (const char *)data, size < 4096 ? size : 4096);
    }
    remat_tokenizer_destroy(tokenizer);
    fuzz_end(context);
}
