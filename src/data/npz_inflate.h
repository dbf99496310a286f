#ifndef REMAT_DATA_NPZ_INFLATE_H
#define REMAT_DATA_NPZ_INFLATE_H

#include "data/data_file.h"

/* Replaces the contents of a file by what its `packed` bytes at `at` are when they are inflated: `bytes` bytes with this
 * CRC-32, held in memory. REMAT_BAD_INPUT if they are not; REMAT_INVALID without zlib; REMAT_NO_MEMORY, REMAT_IO. */
remat_status npz_inflate(data_file *file, uint64_t at, uint64_t packed, uint64_t bytes, uint32_t checksum);

#endif
