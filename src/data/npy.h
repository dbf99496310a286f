/* NumPy's .npy files: one array, a short header in front of it. */
#ifndef REMAT_DATA_NPY_H
#define REMAT_DATA_NPY_H

#include <stdbool.h>

#include "data/data_file.h"

typedef enum npy_type { NPY_FLOAT32, NPY_FLOAT64, NPY_INT32, NPY_INT64, NPY_UINT8, NPY_FLOAT16 } npy_type;
enum { NPY_MAX_RANK = 32 };

typedef struct npy_header {
    npy_type type;
    uint32_t rank;
    uint64_t dims[NPY_MAX_RANK];
    uint64_t values;      /* the product of dims */
    uint64_t data_offset; /* where the values start in the file */
} npy_header;

/* Reads the header and checks that the file holds all values. Versions 1 to 3, little-endian, C order.
 * REMAT_BAD_INPUT says what the file has and what can be read. */
remat_status npy_read_header(const data_file *file, npy_header *header);

/* Bytes of a value. */
size_t npy_type_size(npy_type type);
/* As NumPy calls it: "float32". */
const char *npy_type_name(npy_type type);
bool npy_type_is_integer(npy_type type);

/* Converts values of a file; `from` needs no alignment. Whole numbers that do not fit become INT32_MIN or INT32_MAX,
 * which no range of ids contains. */
void npy_to_float(npy_type type, const void *from, size_t count, float *to);
void npy_to_int32(npy_type type, const void *from, size_t count, int32_t *to);

#endif
