/* Remat: sizes, counts and texts as people read and write them. Several threads may use these calls at the same time,
 * with different contexts. */
#ifndef REMAT_UNITS_H
#define REMAT_UNITS_H

#include <remat/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a size such as "512", "64KiB" or "1.5GB". Units: B; KB, MB, GB, TB, PB, EB (powers of 1000); KiB, MiB, GiB,
 * TiB, PiB, EiB (powers of 1024). A fraction of a byte is cut off. REMAT_INVALID for anything else, with the reason on
 * the context. A bare "8G" is refused because it could mean 8 GB or 8 GiB. */
remat_status remat_size_parse(remat_context *context, const char *text, uint64_t *bytes);

/* Reads a count: digits only. REMAT_INVALID for anything else. */
remat_status remat_count_parse(remat_context *context, const char *text, uint64_t *count);

/* Converts mebibytes to bytes. REMAT_INVALID for a number that is negative, NaN, infinite or too large. */
remat_status remat_size_from_mib(remat_context *context, double mib, uint64_t *bytes);

/* Writes a size for people: "512 B", "64 KiB", "1.50 GiB". Whole numbers have no decimals; others are rounded to three
 * digits. Returns `text`. */
#define REMAT_SIZE_TEXT 24
const char *remat_size_print(uint64_t bytes, char text[REMAT_SIZE_TEXT]);

/* The same, but rounded up. Use it for a smallest budget: remat_size_parse of the text gives `bytes` or more. */
const char *remat_size_print_up(uint64_t bytes, char text[REMAT_SIZE_TEXT]);

/* Writes a count for people: "9,000,000". Returns `text`. */
#define REMAT_COUNT_TEXT 32
const char *remat_count_print(uint64_t count, char text[REMAT_COUNT_TEXT]);

/* Escapes a text so that it is safe to print on a terminal: control characters, marks that change the direction of
 * writing, and bytes that are not UTF-8 become escapes such as \n, \x1b and \u202e. A text that was escaped stays as it
 * is. At most `room` bytes are written, including the terminating 0; no character or escape is cut. Returns the length
 * of the whole result without the 0, as snprintf does. */
size_t remat_text_escape(const char *text, char *to, size_t room);

#ifdef __cplusplus
}
#endif
#endif
