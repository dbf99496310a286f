/* A weights file as it is read: shared by the files safetensors*.c. */
#ifndef REMAT_DATA_SAFETENSORS_FILE_H
#define REMAT_DATA_SAFETENSORS_FILE_H

#include "base/hash.h"
#include "data/data_file.h"
#include "data/safetensors.h"

struct safetensors {
    remat_context *context;
    data_file source;
    uint64_t data_offset;        /* of the first value in the file */
    safetensors_tensor *tensors; /* names are owned */
    size_t count, capacity;
    uint32_t *by_name;       /* positions in the order of names */
    safetensors_text *texts; /* keys and values are owned */
    size_t text_count, text_capacity;
    safetensors **shards; /* of a folder; NULL: it is a file */
    size_t shard_count, shard_capacity;
};

/* Fills a folder's shards and tensors (safetensors_folder.c). */
remat_status safetensors_open_folder(safetensors *file, const char *path);

/* Makes the list by name; REMAT_BAD_INPUT for a name that is there twice. */
remat_status safetensors_sort(safetensors *file);

/* The file that has a tensor: the file itself, or a shard. */
static inline const safetensors *safetensors_holder(const safetensors *file, const safetensors_tensor *tensor)
{
    return file->shards ? file->shards[tensor->shard] : file;
}

/* Fills tensors, texts and data_offset. After a failure, safetensors_close releases what was read. */
remat_status safetensors_read_header(safetensors *file);

/* Reads the bytes of a tensor from the first to the last, and compares their checksum at the end. */
typedef struct tensor_reader {
    const safetensors *file;
    const safetensors_tensor *tensor;
    uint64_t at;
    XXH3_state_t state;
} tensor_reader;
void tensor_reader_begin(tensor_reader *reader, const safetensors *file, const safetensors_tensor *tensor);
remat_status tensor_reader_next(tensor_reader *reader, void *to, size_t bytes);
remat_status tensor_reader_end(tensor_reader *reader);

/* Compares the checksum of the header, if there is one, and finds those of the tensors. `by_name` must be there. */
remat_status safetensors_check_header(safetensors *file);

#endif
