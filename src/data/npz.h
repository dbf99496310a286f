/* NumPy's .npz files: ZIP archives of .npy files, stored or deflated. */
#ifndef REMAT_DATA_NPZ_H
#define REMAT_DATA_NPZ_H

#include <stdbool.h>

#include "data/data_file.h"

enum { NPZ_LONGEST_NAME = 255 };

/* Whether an open file begins as a ZIP archive does. */
remat_status npz_is_archive(const data_file *file, bool *is_archive);

/* Makes a member of an open archive the contents of `file`: the first of `names` that is there, with or without ".npy".
 * A stored member is read where it lies; a deflated one is held in memory as a whole. `member` gets its name, without
 * ".npy". The list ends with NULL. REMAT_BAD_INPUT, REMAT_INVALID without zlib, REMAT_IO, REMAT_NO_MEMORY. */
remat_status npz_enter(data_file *file, const char *const *names, char member[NPZ_LONGEST_NAME + 1]);

/* Calls `visit` for every member of an open archive: its name, where its bytes lie in the file, and how many there are.
 * `stored` is false if they are packed. Ends at the first failure of `visit`. REMAT_BAD_INPUT, REMAT_IO. */
typedef remat_status (*npz_visit)(void *user, const char *name, uint64_t at, uint64_t bytes, bool stored);
remat_status npz_each(const data_file *file, npz_visit visit, void *user);

#endif
