#include "data/tensor_map.h"

#include "data/safetensors_file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t offset_of(const safetensors *holder, const safetensors_tensor *tensor)
{
    return holder->source.base + holder->data_offset + tensor->begin;
}

bool tensor_map_is_possible(const safetensors *file, const safetensors_tensor *tensor, remat_dtype dtype)
{
    const safetensors *holder = safetensors_holder(file, tensor);
    const dtype_traits *traits = dtype_traits_of(dtype);
    return traits->safetensors && strcmp(tensor->dtype, traits->safetensors) == 0 && !holder->source.held &&
           tensor->values > 0 && offset_of(holder, tensor) % traits->bytes == 0;
}

remat_status tensor_map_open(const safetensors *file, const safetensors_tensor *tensor, tensor_map *map)
{
    const safetensors *holder = safetensors_holder(file, tensor);
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), offset = offset_of(holder, tensor), within = offset % page;
    const size_t length = (size_t)(within + tensor->end - tensor->begin);
    void *pages = mmap(NULL, length, PROT_READ, MAP_SHARED, holder->source.descriptor, (off_t)(offset - within));
    if (pages == MAP_FAILED) {
        remat_place place = data_file_place(&holder->source);
        place.field = tensor->name;
        return remat_fail(file->context, REMAT_IO, &place, "cannot be mapped: %s", strerror(errno));
    }
    *map =
        (tensor_map){(const char *)pages + within, pages, length, holder->source.device, holder->source.number, offset};
    return REMAT_OK;
}

void tensor_map_close(tensor_map *map)
{
    if (map->pages)
        munmap(map->pages, map->length);
    *map = (tensor_map){0};
}

bool tensor_map_has(const tensor_map *map, const safetensors *file, const safetensors_tensor *tensor)
{
    const safetensors *holder = safetensors_holder(file, tensor);
    return map->device == holder->source.device && map->number == holder->source.number &&
           map->offset == offset_of(holder, tensor);
}

/* Advice: a system that does not follow it computes the same. */
void tensor_map_drop(const tensor_map *map)
{
    if (map->pages)
        madvise(map->pages, map->length, MADV_DONTNEED);
}

void tensor_map_want(const tensor_map *map)
{
    if (map->pages)
        madvise(map->pages, map->length, MADV_WILLNEED);
}

remat_status safetensors_check_unchanged(const safetensors *file)
{
    for (size_t i = 0; i < file->shard_count; i++)
        REMAT_TRY(safetensors_check_unchanged(file->shards[i]));
    return file->shards ? REMAT_OK : data_file_check_unchanged(&file->source);
}
