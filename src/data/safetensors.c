#include "data/safetensors_file.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/sort.h"
#include "base/half.h"
#include "base/search.h"
#include "data/npz.h"
#include "data/torch_file.h"

#include <string.h>
#include <sys/stat.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are read as they lie in the file");

const safetensors_tensor *safetensors_find(const safetensors *file, const char *name)
{
    size_t at = REMAT_FIRST(i, 0, file->count, strcmp(file->tensors[file->by_name[i]].name, name) >= 0);
    const safetensors_tensor *tensor = at < file->count ? &file->tensors[file->by_name[at]] : NULL;
    return tensor && strcmp(tensor->name, name) == 0 ? tensor : NULL;
}

size_t safetensors_count(const safetensors *file)
{
    return file->count;
}

const safetensors_tensor *safetensors_at(const safetensors *file, size_t position)
{
    return &file->tensors[position];
}

const char *safetensors_metadata(const safetensors *file, const char *key)
{
    for (size_t i = 0; i < file->text_count; i++)
        if (strcmp(file->texts[i].key, key) == 0)
            return file->texts[i].value;
    return NULL;
}

/* ---- checks of the whole ---- */

static bool name_before(const void *user, uint32_t a, uint32_t b)
{
    const safetensors *file = user;
    return strcmp(file->tensors[a].name, file->tensors[b].name) < 0;
}

static bool offset_before(const void *user, uint32_t a, uint32_t b)
{
    const safetensors_tensor *x = &((const safetensors *)user)->tensors[a];
    const safetensors_tensor *y = &((const safetensors *)user)->tensors[b];
    return x->begin != y->begin ? x->begin < y->begin : x->end < y->end;
}

static remat_status check_offsets(safetensors *file)
{
    remat_place place = data_file_place(&file->source);
    uint64_t reached = 0, all = file->source.bytes - file->data_offset;
    REMAT_TRY(remat_order(file->source.context, file->count, offset_before, file, &file->by_name));
    for (size_t i = 0; i < file->count; i++) {
        const safetensors_tensor *tensor = &file->tensors[file->by_name[i]];
        if (tensor->begin != reached)
            return remat_fail(file->source.context, REMAT_BAD_INPUT, &place,
                              "'%.100s' starts at byte %llu; what lies before it ends at %llu", tensor->name,
                              (unsigned long long)tensor->begin, (unsigned long long)reached);
        reached = tensor->end;
    }
    if (reached == all)
        return REMAT_OK;
    return remat_fail(file->source.context, REMAT_BAD_INPUT, &place,
                      "the tensors need %llu bytes, behind the header are %llu; the file is damaged or not complete",
                      (unsigned long long)reached, (unsigned long long)all);
}

static remat_status check_names(safetensors *file)
{
    remat_place place = data_file_place(&file->source);
    REMAT_TRY(remat_sort(file->source.context, file->by_name, file->count, name_before, file));
    for (size_t i = 1; i < file->count; i++)
        if (strcmp(file->tensors[file->by_name[i - 1]].name, file->tensors[file->by_name[i]].name) == 0)
            return remat_fail(file->source.context, REMAT_BAD_INPUT, &place, "'%.100s' is there twice",
                              file->tensors[file->by_name[i]].name);
    return REMAT_OK;
}

remat_status safetensors_sort(safetensors *file)
{
    REMAT_TRY(remat_order(file->context, file->count, offset_before, file, &file->by_name));
    return check_names(file);
}

const char *safetensors_path(const safetensors *file, const safetensors_tensor *tensor)
{
    return safetensors_holder(file, tensor)->source.path;
}

bool safetensors_is_folder(const safetensors *file)
{
    return file->shards != NULL;
}

/* ---- opening and closing ---- */

static remat_status open_file(safetensors *file, const char *path)
{
    bool archive = false;
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return safetensors_open_folder(file, path);
    REMAT_TRY(data_file_open(file->source.context, path, 0, &file->source));
    REMAT_TRY(npz_is_archive(&file->source, &archive));
    if (archive) {
        REMAT_TRY(torch_file_read(file));
        return safetensors_sort(file);
    }
    REMAT_TRY(torch_file_check_age(file));
    REMAT_TRY(safetensors_read_header(file));
    REMAT_TRY(check_offsets(file));
    REMAT_TRY(check_names(file));
    return safetensors_check_header(file);
}

remat_status safetensors_open(remat_context *context, const char *path, safetensors **file)
{
    *file = NULL;
    safetensors *made = remat_alloc_zeroed(context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->context = context;
    made->source.context = context;
    made->source.descriptor = -1;
    remat_status status = open_file(made, path);
    if (status == REMAT_OK)
        *file = made;
    else
        safetensors_close(made);
    return status;
}

void safetensors_close(safetensors *file)
{
    if (!file)
        return;
    remat_context *context = file->context;
    for (size_t i = 0; i < file->count; i++)
        remat_text_release(context, file->tensors[i].name);
    for (size_t i = 0; i < file->text_count; i++) {
        remat_text_release(context, file->texts[i].key);
        remat_text_release(context, file->texts[i].value);
    }
    remat_release(context, file->by_name, file->count, sizeof *file->by_name);
    remat_release(context, file->tensors, file->capacity, sizeof *file->tensors);
    remat_release(context, file->texts, file->text_capacity, sizeof *file->texts);
    for (size_t i = 0; i < file->shard_count; i++)
        safetensors_close(file->shards[i]);
    remat_release(context, file->shards, file->shard_capacity, sizeof *file->shards);
    data_file_close(&file->source);
    remat_release(context, file, 1, sizeof *file);
}

/* ---- values ---- */

static remat_status read_converted(const safetensors *file, const safetensors_tensor *tensor, float *to)
{
    enum { PART = 1024 };
    union {
        uint16_t half[PART];
        double wide[PART];
    } part;
    const half_kernels *kernels = half_kernels_choose();
    bool wide = strcmp(tensor->dtype, "F64") == 0;
    remat_precision precision = strcmp(tensor->dtype, "F16") == 0 ? REMAT_FP16 : REMAT_BF16;
    tensor_reader reader;
    tensor_reader_begin(&reader, file, tensor);
    for (uint64_t left = tensor->values; left > 0;) {
        size_t count = left < PART ? (size_t)left : PART, bytes = count * (wide ? 8 : 2);
        REMAT_TRY(tensor_reader_next(&reader, &part, bytes));
        if (wide)
            for (size_t i = 0; i < count; i++)
                to[i] = (float)part.wide[i];
        else
            half_unpack(kernels, precision, part.half, to, count);
        to += count;
        left -= count;
    }
    return tensor_reader_end(&reader);
}

static remat_status read_bytes(const safetensors *file, const safetensors_tensor *tensor, char *to)
{
    enum { PART = 1 << 18 }; /* small enough to be in the cache still when its checksum is made */
    tensor_reader reader;
    tensor_reader_begin(&reader, file, tensor);
    for (uint64_t left = tensor->end - tensor->begin; left > 0;) {
        size_t count = left < PART ? (size_t)left : PART;
        REMAT_TRY(tensor_reader_next(&reader, to, count));
        to += count;
        left -= count;
    }
    return tensor_reader_end(&reader);
}

static remat_status check_count(const safetensors *file, const safetensors_tensor *tensor, size_t count)
{
    remat_place place = data_file_place(&file->source);
    if (count == tensor->values)
        return REMAT_OK;
    return remat_fail(file->context, REMAT_INVALID, &place, "'%.100s' has %llu values; %zu were asked for",
                      tensor->name, (unsigned long long)tensor->values, count);
}

static remat_status check_stored(const safetensors *file, const safetensors_tensor *tensor, remat_dtype dtype)
{
    const char *wanted = dtype_traits_of(dtype)->safetensors;
    remat_place place = data_file_place(&file->source);
    if (strcmp(tensor->dtype, wanted) == 0)
        return REMAT_OK;
    return remat_fail(file->context, REMAT_BAD_INPUT, &place, "'%.100s' has values of type %s; they must be %s",
                      tensor->name, tensor->dtype, wanted);
}

remat_status safetensors_read_stored(const safetensors *file, const safetensors_tensor *tensor, remat_dtype dtype,
                                     void *to, size_t count)
{
    file = safetensors_holder(file, tensor);
    REMAT_TRY(check_count(file, tensor, count));
    REMAT_TRY(check_stored(file, tensor, dtype));
    return read_bytes(file, tensor, to);
}

remat_status safetensors_read_stored_part(const safetensors *file, const safetensors_tensor *tensor, remat_dtype dtype,
                                          uint64_t first, void *to, size_t count)
{
    file = safetensors_holder(file, tensor);
    if (first > tensor->values || count > tensor->values - first)
        return check_count(file, tensor, count);
    REMAT_TRY(check_stored(file, tensor, dtype));
    return data_file_read(&file->source, file->data_offset + tensor->begin + dtype_bytes(dtype, first), to,
                          dtype_bytes(dtype, count));
}

remat_status safetensors_read(const safetensors *file, const safetensors_tensor *tensor, float *to, size_t count)
{
    file = safetensors_holder(file, tensor);
    remat_place place = data_file_place(&file->source);
    REMAT_TRY(check_count(file, tensor, count));
    if (strcmp(tensor->dtype, "F32") == 0)
        return read_bytes(file, tensor, (char *)to);
    if (strcmp(tensor->dtype, "F64") == 0 || strcmp(tensor->dtype, "F16") == 0 || strcmp(tensor->dtype, "BF16") == 0)
        return read_converted(file, tensor, to);
    return remat_fail(file->context, REMAT_BAD_INPUT, &place,
                      "'%.100s' has values of type %s; weights must be F32, F16, BF16 or F64", tensor->name,
                      tensor->dtype);
}

remat_status safetensors_read_part(const safetensors *file, const safetensors_tensor *tensor, uint64_t first, float *to,
                                   size_t count)
{
    enum { PART = 4096 };
    uint16_t part[PART];
    file = safetensors_holder(file, tensor);
    const bool is_full = strcmp(tensor->dtype, "F32") == 0, is_fp16 = strcmp(tensor->dtype, "F16") == 0;
    const uint64_t begin = file->data_offset + tensor->begin, bytes = is_full ? 4 : 2;
    if (first > tensor->values || count > tensor->values - first)
        return check_count(file, tensor, count);
    if (is_full)
        return data_file_read(&file->source, begin + first * bytes, to, count * bytes);
    if (!is_fp16 && strcmp(tensor->dtype, "BF16") != 0) {
        remat_place place = data_file_place(&file->source);
        return remat_fail(file->context, REMAT_BAD_INPUT, &place,
                          "'%.100s' has values of type %s; weights in fewer bits come from F32, F16 or BF16",
                          tensor->name, tensor->dtype);
    }
    const half_kernels *kernels = half_kernels_choose();
    for (size_t at = 0, some; at < count; at += some) {
        some = count - at < PART ? count - at : PART;
        REMAT_TRY(data_file_read(&file->source, begin + (first + at) * bytes, part, some * bytes));
        half_unpack(kernels, is_fp16 ? REMAT_FP16 : REMAT_BF16, part, to + at, some);
    }
    return REMAT_OK;
}
