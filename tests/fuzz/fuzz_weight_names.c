/* Files that say what another program calls the weights: every name can be looked up. */
#include "fuzz/fuzz.h"

#include "data/weight_names.h"

void fuzz_weight_names(const uint8_t *data, size_t size)
{
    static const char *const ours[] = {"fc1.weight", "fc1", "h12.up", "*", ""};
    remat_context *context = fuzz_begin();
    weight_names *names;
    FILE *stream = fuzz_stream(data, size);
    remat_status status = weight_names_read(context, stream, "names.txt", &names);
    FUZZ_CHECK((names != NULL) == (status == REMAT_OK));
    if (fuzz_accepted(context, status))
        for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
            char theirs[WEIGHT_NAME_TEXT];
            bool transposed;
            if (weight_names_find(names, ours[i], theirs, &transposed))
                FUZZ_CHECK(strlen(theirs) < WEIGHT_NAME_TEXT);
            if (weight_names_find_any(names, ours[i], theirs))
                FUZZ_CHECK(strlen(theirs) < WEIGHT_NAME_TEXT);
        }
    weight_names_destroy(names);
    fclose(stream);
    fuzz_end(context);
}
