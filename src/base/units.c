#include <remat/units.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/names.h"
#include "base/number_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct unit {
    const char *name;
    uint64_t bytes;
} units[] = {
    {"", 1},
    {"B", 1},
    {"KB", 1000ull},
    {"MB", 1000000ull},
    {"GB", 1000000000ull},
    {"TB", 1000000000000ull},
    {"PB", 1000000000000000ull},
    {"EB", 1000000000000000000ull},
    {"KiB", 1ull << 10},
    {"MiB", 1ull << 20},
    {"GiB", 1ull << 30},
    {"TiB", 1ull << 40},
    {"PiB", 1ull << 50},
    {"EiB", 1ull << 60},
};

/* `8G` could be either; say so instead of choosing. */
static remat_status fail_unit(remat_context *context, const char *text, const char *unit)
{
    static const char letters[] = "KMGTPE";
    const char *letter = strlen(unit) == 1 ? strchr(letters, unit[0] & ~0x20) : NULL;
    if (letter) {
        int power = (int)(letter - letters) + 1;
        return remat_fail(context, REMAT_INVALID, NULL,
                          "size '%s' is ambiguous: write %cB for 10^%d bytes or %ciB for 2^%d bytes", text, *letter,
                          3 * power, *letter, 10 * power);
    }
    return remat_fail(
        context, REMAT_INVALID, NULL,
        "size '%s' has the unknown unit '%s'; use B, KB to EB (powers of 1000) or KiB to EiB (powers of 1024)", text,
        unit);
}

/* floor(0.digits * unit), exactly, however many digits there are: from the last to the first, each carries a tenth of what
 * is behind it, and cutting the carry cuts nothing that could still reach a whole byte. */
static uint64_t fraction_of(const char *digits, size_t count, uint64_t unit)
{
    uint64_t carry = 0;
    while (count-- > 0)
        carry = ((uint64_t)(digits[count] - '0') * unit + carry) / 10;
    return carry;
}

remat_status remat_size_parse(remat_context *context, const char *text, uint64_t *bytes)
{
    const char *at = text;
    uint64_t whole = 0;
    size_t digits = 0, fraction_digits = 0;
    for (; *at >= '0' && *at <= '9'; at++, digits++) {
        uint64_t ten_times;
        if (!remat_multiply(whole, 10, &ten_times) || !remat_add(&ten_times, (uint64_t)(*at - '0')))
            return remat_fail(context, REMAT_INVALID, NULL, "size '%s' is too large; it must be below 2^63 bytes",
                              text);
        whole = ten_times;
    }
    const char *fraction = *at == '.' ? at + 1 : at;
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++)
            fraction_digits++;
    if (digits + fraction_digits == 0)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "'%s' is not a size; write digits and a unit, such as 512, 64KiB, 8GB or 1.5GiB", text);
    const char *unit = at;
    while (*unit == ' ')
        unit++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!names_equal(unit, units[i].name))
            continue;
        uint64_t result;
        if (!remat_multiply(whole, units[i].bytes, &result) ||
            !remat_add(&result, fraction_of(fraction, fraction_digits, units[i].bytes)))
            return remat_fail(context, REMAT_INVALID, NULL, "size '%s' is too large; it must be below 2^63 bytes",
                              text);
        *bytes = result;
        return REMAT_OK;
    }
    return fail_unit(context, text, unit);
}

remat_status remat_count_parse(remat_context *context, const char *text, uint64_t *count)
{
    uint64_t value = 0;
    if (!*text)
        return remat_fail(context, REMAT_INVALID, NULL, "a count is missing; write digits, such as 12");
    for (const char *at = text; *at; at++) {
        uint64_t ten_times;
        if (*at < '0' || *at > '9')
            return remat_fail(context, REMAT_INVALID, NULL, "'%s' is not a count; write digits only, such as 12", text);
        if (!remat_multiply(value, 10, &ten_times) || !remat_add(&ten_times, (uint64_t)(*at - '0')))
            return remat_fail(context, REMAT_INVALID, NULL, "count '%s' is too large; it must be below 2^63", text);
        value = ten_times;
    }
    *count = value;
    return REMAT_OK;
}

remat_status remat_size_from_mib(remat_context *context, double mib, uint64_t *bytes)
{
    /* 2^43 MiB are 2^63 bytes. */
    if (isnan(mib) || mib < 0 || mib >= 0x1p43)
        return remat_fail(context, REMAT_INVALID, NULL, "%g MiB is not a size; it must be at least 0 and below 2^43",
                          mib);
    *bytes = (uint64_t)(mib * 0x1p20);
    return REMAT_OK;
}

/* The largest power of 1024 that is in it at least once, and its name. */
static uint64_t unit_for(uint64_t bytes, const char **name)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t power = 0;
    while (power + 1 < sizeof names / sizeof names[0] && bytes >> (10 * (power + 1)))
        power++;
    *name = names[power];
    return (uint64_t)1 << (10 * power);
}

const char *remat_size_print(uint64_t bytes, char text[REMAT_SIZE_TEXT])
{
    const char *name;
    uint64_t unit = unit_for(bytes, &name);
    double value = (double)bytes / (double)unit;
    if (bytes % unit == 0)
        snprintf(text, REMAT_SIZE_TEXT, "%llu %s", (unsigned long long)(bytes / unit), name);
    else
        text_print(text, REMAT_SIZE_TEXT, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, name);
    return text;
}

const char *remat_size_print_up(uint64_t bytes, char text[REMAT_SIZE_TEXT])
{
    const char *name;
    uint64_t unit = unit_for(bytes, &name), figures = bytes / unit, rest = bytes % unit;
    if (rest == 0)
        return remat_size_print(bytes, text);
    int decimals = 0;
    for (; figures < 100; decimals++) { /* ten times a rest is below 2^64 even for EiB */
        figures = figures * 10 + rest * 10 / unit;
        rest = rest * 10 % unit;
    }
    figures += rest > 0;
    if (figures == 1000 && decimals > 0) { /* 9.99 has become 10.00 */
        figures = 100;
        decimals--;
    }
    uint64_t one = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    int length = snprintf(text, REMAT_SIZE_TEXT, "%llu", (unsigned long long)(figures / one));
    if (decimals)
        length += snprintf(text + length, REMAT_SIZE_TEXT - (size_t)length, ".%0*llu", decimals,
                           (unsigned long long)(figures % one));
    snprintf(text + length, REMAT_SIZE_TEXT - (size_t)length, " %s", name);
    return text;
}

const char *remat_count_print(uint64_t count, char text[REMAT_COUNT_TEXT])
{
    char digits[REMAT_COUNT_TEXT];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *to = text;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}
