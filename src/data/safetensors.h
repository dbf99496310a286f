/* Weights files in the safetensors format: eight bytes with the length of a JSON header, the header, the values.
 *
 *     | u64 length | {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}   | values ... |
 *
 * Little-endian, C order, offsets from the first value on. Tensors fill the space after the header without gaps. */
#ifndef REMAT_DATA_SAFETENSORS_H
#define REMAT_DATA_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype_traits.h"
#include "base/error.h"

enum {
    SAFETENSORS_MAX_RANK = 8,
    SAFETENSORS_MAX_ENTRIES = 1000000,  /* their checksums are one text, and the reader takes texts of up to 16 MiB */
    SAFETENSORS_MAX_HEADER = 100000000, /* bytes, as the format's own library has it */
};

/* ---- writing ---- */

typedef struct safetensors_entry {
    const char *name; /* unique, and not "__metadata__" */
    uint32_t rank;    /* 0: a single value */
    uint64_t dims[SAFETENSORS_MAX_RANK];
    const void *data; /* NULL: the source has it */
    remat_dtype dtype;
} safetensors_entry;

/* Provides the values of one entry at a time. Each is opened twice, for its checksum and when it is written. The values
 * must be the same both times. */
typedef struct safetensors_source {
    remat_status (*open)(void *user, size_t entry, const void **data);
    void (*close)(void *user); /* after each open; NULL: there is nothing to do */
    void *user;
} safetensors_source;

typedef struct safetensors_text {
    const char *key, *value;
} safetensors_text;

/* Writes the complete file or nothing, with new checksums. `source` may be NULL if every entry has its data. Entries are
 * written in their order. The same content gives the same bytes. REMAT_INVALID for a repeated name, REMAT_IO,
 * REMAT_NO_MEMORY. */
remat_status safetensors_save(remat_context *context, const char *path, const safetensors_entry *entries, size_t count,
                              const safetensors_text *metadata, size_t metadata_count,
                              const safetensors_source *source);

/* ---- reading ---- */

typedef struct safetensors safetensors;

typedef struct safetensors_tensor {
    const char *name;
    const char *dtype; /* "F32" */
    uint32_t rank;
    uint64_t dims[SAFETENSORS_MAX_RANK];
    uint64_t values;      /* the product of dims */
    uint64_t begin, end;  /* of its bytes, from the first value of the file on */
    const char *checksum; /* 16 digits of the metadata; NULL: the file has none */
    uint32_t shard;       /* of a folder: the file that has it */
} safetensors_tensor;

/* Opens a file, or a folder with model.safetensors, or with model.safetensors.index.json and the files that it names: these are
 * like one file then, without metadata. A file's name in a message is that of the file which has the tensor.
 *
 * Checks everything but the values: lengths, grammar, types, shapes against offsets, that tensors
 * neither overlap nor leave gaps, that no name is repeated, and the checksum of the header if there is one. REMAT_IO,
 * REMAT_BAD_INPUT, REMAT_NO_MEMORY. */
remat_status safetensors_open(remat_context *context, const char *path, safetensors **file);
void safetensors_close(safetensors *file); /* NULL is fine */

/* The path of the file that has a tensor, for messages. */
const char *safetensors_path(const safetensors *file, const safetensors_tensor *tensor);
bool safetensors_is_folder(const safetensors *file);

/* A tensor by its name; NULL where there is none. Good until the file is closed. */
const safetensors_tensor *safetensors_find(const safetensors *file, const char *name);

/* All tensors, in the order of the file. */
size_t safetensors_count(const safetensors *file);
const safetensors_tensor *safetensors_at(const safetensors *file, size_t position);

/* A text of the metadata; NULL where there is none. */
const char *safetensors_metadata(const safetensors *file, const char *key);

/* Whether the file says what its checksums are. Files of other programs and of release 0.1 do not. */
bool safetensors_has_checksums(const safetensors *file);

/* Reads the values of a tensor of this file and compares their checksum. Fine where the file has none. REMAT_BAD_INPUT
 * if they are damaged, REMAT_IO. */
remat_status safetensors_check(const safetensors *file, const safetensors_tensor *tensor);

/* The values of a tensor of this file as floats: F32 as they are, F16, BF16 and F64 converted. `count` must be the
 * number of its values. REMAT_BAD_INPUT for other types, and if the values are damaged: then they have been read. */
remat_status safetensors_read(const safetensors *file, const safetensors_tensor *tensor, float *to, size_t count);

/* Some of these values, without a look at the checksum: for weights that are too many to be held in fp32. */
remat_status safetensors_read_part(const safetensors *file, const safetensors_tensor *tensor, uint64_t first, float *to,
                                   size_t count);

/* The values of a tensor of this file as they are stored, which must be in this type. REMAT_BAD_INPUT if they are of another,
 * or damaged: then they have been read. */
remat_status safetensors_read_stored(const safetensors *file, const safetensors_tensor *tensor, remat_dtype dtype,
                                     void *to, size_t count);

/* Some of these values, from `first` on, without a look at the checksum. In a type of blocks, `first` begins a block. */
remat_status safetensors_read_stored_part(const safetensors *file, const safetensors_tensor *tensor, remat_dtype dtype,
                                          uint64_t first, void *to, size_t count);

#endif
