/* Pickles: every value that was read can be looked at. */
#include "fuzz/fuzz.h"

#include "data/pickle.h"

void fuzz_pickle(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    const remat_place place = REMAT_PLACE_NOWHERE;
    pickle made;
    if (fuzz_accepted(context, pickle_read(context, data, size, &place, &made))) {
        FUZZ_CHECK(made.result < made.value_count);
        for (size_t i = 0; i < made.value_count; i++) {
            const pickle_value *value = &made.values[i];
            FUZZ_CHECK(!value->text || ((const uint8_t *)value->text >= data &&
                                        (const uint8_t *)value->text + value->length <= data + size));
            FUZZ_CHECK(value->first == PICKLE_NONE || value->first < made.item_count);
        }
        for (size_t i = 0; i < made.item_count; i++)
            FUZZ_CHECK(made.items[i].value < made.value_count &&
                       (made.items[i].next == PICKLE_NONE || made.items[i].next < made.item_count));
    }
    pickle_release(&made);
    fuzz_end(context);
}
