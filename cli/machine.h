/* Figures of the machine, for `remat doctor`. Functions with a text fill it, or return false if it is not known. */
#ifndef REMAT_CLI_MACHINE_H
#define REMAT_CLI_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_NO_LIMIT UINT64_MAX

/* What stands before /proc and /sys: "", except in tests. */
extern const char *machine_root;

bool machine_processor(char *text, size_t room);
void machine_features(char *text, size_t room); /* that the kernels can use, with spaces between */
bool machine_libraries(char *text, size_t room);
bool machine_huge_pages(char *text, size_t room);

long machine_cores_online(void);
long machine_cores_usable(void); /* by this process */
double machine_core_limit(void); /* of its control group, in cores; 0 where there is none */

/* Bytes; MACHINE_NO_LIMIT where there is none. */
typedef struct machine_memory {
    uint64_t total, available, swap_total, swap_used;
    uint64_t group; /* the least limit of the control groups that this process is in */
    uint64_t address_space, data, locked, stack;
    uint64_t page;
} machine_memory;
void machine_read_memory(machine_memory *memory);

/* The most that this process may have: the memory of the machine, or a limit that is smaller. *what names it. */
uint64_t machine_usable(const machine_memory *memory, const char **what);

#endif
