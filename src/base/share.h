/* Shares, from 0 to 1, without floating point. */
#ifndef REMAT_BASE_SHARE_H
#define REMAT_BASE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#define REMAT_SHARE_ONE ((uint64_t)1000000000)

/* Reads a decimal number from 0 to 1, `0.25` or `25e-2`, in billionths; false where the text is none. What is finer is cut
 * off. */
bool remat_share_parse(const char *text, uint64_t *billionths);

#endif
