/* `remat train --memory-limit hard`: the system itself keeps the process within its budget. */
#ifndef REMAT_CLI_MEMORY_LIMIT_H
#define REMAT_CLI_MEMORY_LIMIT_H

#include "command.h"

/* For what the program itself needs while it trains: buffers of files, the C library. */
enum { MEMORY_LIMIT_FILES = 8 << 20 };

/* Limits the process to `bytes` and MEMORY_LIMIT_FILES more than it has now; allocations beyond that fail. Starts all
 * threads first, because their stacks count. *most: the limit. False: it cannot be set, and stderr says why. */
bool memory_limit_set(uint64_t bytes, unsigned threads, uint64_t *most);

#endif
