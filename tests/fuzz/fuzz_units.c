/* Sizes, counts, shares, numbers and pairs as people write them. */
#include "fuzz/fuzz.h"

#include "base/number_text.h"
#include "base/properties.h"
#include "base/share.h"

#include <math.h>

static void check_size(remat_context *context, const char *text)
{
    uint64_t bytes, again;
    char printed[REMAT_SIZE_TEXT];
    if (!fuzz_accepted(context, remat_size_parse(context, text, &bytes)))
        return;
    FUZZ_CHECK(bytes <= INT64_MAX);
    long double number = strtold(text, NULL);
    FUZZ_CHECK((long double)bytes + 1 >= number); /* a unit is at least a byte */
    FUZZ_CHECK(strlen(remat_size_print(bytes, printed)) < REMAT_SIZE_TEXT);
    remat_size_print_up(bytes, printed);
    if (remat_size_parse(context, printed, &again) == REMAT_OK)
        FUZZ_CHECK(again >= bytes);
    else
        FUZZ_CHECK(strstr(remat_context_message(context), "too large")); /* rounded up to 2^63 */
}

static void check_count(remat_context *context, const char *text)
{
    uint64_t count;
    char printed[REMAT_COUNT_TEXT];
    if (fuzz_accepted(context, remat_count_parse(context, text, &count))) {
        FUZZ_CHECK(count == strtoull(text, NULL, 10));
        FUZZ_CHECK(strlen(remat_count_print(count, printed)) < REMAT_COUNT_TEXT);
    }
}

static void check_share(const char *text)
{
    uint64_t billionths;
    if (!remat_share_parse(text, &billionths))
        return;
    FUZZ_CHECK(billionths <= REMAT_SHARE_ONE);
    FUZZ_CHECK(text[strspn(text, "0123456789.eE+-")] == '\0');
    long double number = strtold(text, NULL);
    FUZZ_CHECK(fabsl(number * 1e9L - (long double)billionths) < 1.001L);
}

static void check_number(remat_context *context, const char *text)
{
    double value, again;
    const char *end;
    char printed[NUMBER_TEXT];
    if (number_parse(text, &end, &value)) {
        FUZZ_CHECK(isfinite(value) && end > text);
        FUZZ_CHECK(value == strtod(text, NULL));
        number_print(value, printed);
        FUZZ_CHECK(number_parse(printed, &end, &again) && !*end && again == value);
        uint64_t bytes;
        if (remat_size_from_mib(context, value, &bytes) == REMAT_OK)
            FUZZ_CHECK(value >= 0 && bytes <= INT64_MAX);
    }
}

static void check_hex(const char *text)
{
    double value;
    char printed[64];
    if (number_parse_hex(text, &value)) {
        FUZZ_CHECK(value >= 0);
        text_print(printed, sizeof printed, "%a", value);
        double again;
        FUZZ_CHECK(number_parse_hex(printed, &again) && again == value);
    }
}

/* A list that is read has numbers in its range, and not too many. */
static void check_numbers(remat_context *context, const char *text)
{
    static const property table[] = {{"list", PROPERTY_NUMBERS, 0, "", -1, 8, NULL, ""}, {0}};
    static property_numbers numbers;
    if (property_set(context, "fuzz", table, &numbers, "list", text) != REMAT_OK)
        return;
    FUZZ_CHECK(numbers.count <= PROPERTY_MOST_NUMBERS);
    for (size_t i = 0; i < numbers.count; i++)
        FUZZ_CHECK(numbers.values[i] >= -1 && numbers.values[i] <= 8);
}

void fuzz_units(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    char *text = fuzz_text(data, size);
    uint64_t pair[2];
    check_size(context, text);
    check_count(context, text);
    check_share(text);
    check_number(context, text);
    check_hex(text);
    property_read_counts(text, 2, pair);
    check_numbers(context, text);
    free(text);
    fuzz_end(context);
}
