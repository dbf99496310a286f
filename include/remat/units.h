/* Remat: sizes and counts as people write them. */
#ifndef REMAT_UNITS_H
#define REMAT_UNITS_H

#include <remat/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a size: digits, at most one decimal point, and B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers
 * of 1024) or no unit at all (bytes). `8G` is an error that names both readings. A fraction of a byte is cut off,
 * so that a budget never grows. REMAT_INVALID with the reason on the context otherwise. */
remat_status remat_size_parse(remat_context *context, const char *text, uint64_t *bytes);

/* Reads a count: digits only. */
remat_status remat_count_parse(remat_context *context, const char *text, uint64_t *count);

/* Converts mebibytes; negative, NaN, infinite or too large is REMAT_INVALID. */
remat_status remat_size_from_mib(remat_context *context, double mib, uint64_t *bytes);

/* Writes a size for people: "512 B", "64 KiB", "1.50 GiB". Exact values print without decimals; others are
 * rounded to three figures. */
#define REMAT_SIZE_TEXT 24
const char *remat_size_print(uint64_t bytes, char text[REMAT_SIZE_TEXT]);

/* The same rounded up: for the least of something, so that the text read as a size is never too little. */
const char *remat_size_print_up(uint64_t bytes, char text[REMAT_SIZE_TEXT]);

/* Writes a count for people, with thousands separated: "9,000,000". */
#define REMAT_COUNT_TEXT 32
const char *remat_count_print(uint64_t count, char text[REMAT_COUNT_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
