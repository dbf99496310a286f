/* A tensor as it lies in its weights file, mapped read-only: processes that map the same file share its pages, and a page takes memory
 * from the first time that it is read until it is dropped. A file that becomes shorter while it is read ends the program with a signal;
 * safetensors_check_unchanged finds most of these cases before. */
#ifndef REMAT_DATA_TENSOR_MAP_H
#define REMAT_DATA_TENSOR_MAP_H

#include "data/safetensors.h"

typedef struct tensor_map {
    const char *at; /* the first value; NULL: nothing is mapped */
    void *pages;
    size_t length;           /* of the pages */
    uint64_t device, number; /* of the file */
    uint64_t offset;         /* of the first value in it */
} tensor_map;

/* Whether the file has the tensor in this type, uncompressed, at an address at which the processor reads the type. */
bool tensor_map_is_possible(const safetensors *file, const safetensors_tensor *tensor, remat_dtype dtype);

/* REMAT_IO. The file may be closed before the map. */
remat_status tensor_map_open(const safetensors *file, const safetensors_tensor *tensor, tensor_map *map);
void tensor_map_close(tensor_map *map);

/* Whether the tensor is what is mapped: the same bytes of the same file. */
bool tensor_map_has(const tensor_map *map, const safetensors *file, const safetensors_tensor *tensor);

/* Its pages leave the process; they are read again when they are needed. */
void tensor_map_drop(const tensor_map *map);
/* It is needed soon: the system may read it from the disk. */
void tensor_map_want(const tensor_map *map);

/* Whether the files are those that were opened: REMAT_IO where one has been written to since, or has another length. */
remat_status safetensors_check_unchanged(const safetensors *file);

#endif
