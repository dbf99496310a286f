/* `remat train --memory-limit hard`: the system itself keeps the process within its budget. */
#ifndef REMAT_CLI_MEMORY_LIMIT_H
#define REMAT_CLI_MEMORY_LIMIT_H

#include "command.h"

/* For what the program itself needs besides tensors: tables, buffers of files. */
enum { MEMORY_LIMIT_TABLES = 8 << 20 };

/* From now on the process gets `bytes` more than it has, and MEMORY_LIMIT_TABLES; what it asks for beyond fails. All
 * threads exist afterwards, since their stacks count. False: the system cannot; stderr says why. */
bool memory_limit_set(uint64_t bytes, unsigned threads);

#endif
