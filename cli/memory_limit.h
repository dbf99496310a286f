/* `remat train --memory-limit hard`: the system itself keeps the process within its budget. */
#ifndef REMAT_CLI_MEMORY_LIMIT_H
#define REMAT_CLI_MEMORY_LIMIT_H

#include "command.h"

/* For what the program itself needs while it trains: buffers of files, the C library. */
enum { MEMORY_LIMIT_FILES = 8 << 20 };
/* For a thread that is yet to be started: its stack of 1 MiB, and what the C library keeps for it. */
enum { MEMORY_LIMIT_THREAD = 5 << 18 };

/* Gives back what planning took and does not need any more: free memory, and the pages of the program that training will not read. */
void memory_trim(void);

/* Limits the process to `bytes`, MEMORY_LIMIT_FILES and the threads that it will start, on top of what it has now;
 * allocations beyond that fail. *most: the limit. False: it cannot be set, and stderr says why. */
bool memory_limit_set(uint64_t bytes, unsigned threads, uint64_t *most);

#endif
