/* A weights file as it is read: shared by safetensors.c and safetensors_header.c. */
#ifndef REMAT_DATA_SAFETENSORS_FILE_H
#define REMAT_DATA_SAFETENSORS_FILE_H

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
};

/* Fills tensors, texts and data_offset. After a failure, safetensors_close releases what was read. */
remat_status safetensors_read_header(safetensors *file);

#endif
