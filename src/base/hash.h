/* XXH3 of libxxhash, compiled into the files that use it: no library to link, no name to clash. A changed bit goes
 * unnoticed with probability 2^-64. */
#ifndef REMAT_BASE_HASH_H
#define REMAT_BASE_HASH_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#endif
