#include "data/torch_file.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/utf8.h"
#include "data/npz.h"
#include "data/pickle.h"

#include <inttypes.h>
#include <string.h>

typedef struct member {
    char *name;
    uint64_t at, bytes;
    bool stored;
} member;

typedef struct torch_archive {
    safetensors *file;
    remat_place place;
    member *members;
    size_t count, capacity;
    size_t next;        /* where the last storage was found: they mostly come in order */
    const char *folder; /* of data.pkl */
    int folder_length;
    pickle contents;
    uint64_t visits; /* of values, so that a dictionary that holds itself has an end */
} torch_archive;

static remat_status fail(const torch_archive *archive, const char *text)
{
    return remat_fail(archive->file->context, REMAT_BAD_INPUT, &archive->place, "%s", text);
}

/* ---- members ---- */

static remat_status add_member(void *user, const char *name, uint64_t at, uint64_t bytes, bool stored)
{
    torch_archive *archive = user;
    remat_context *context = archive->file->context;
    REMAT_TRY(remat_grow(context, (void **)&archive->members, &archive->capacity, archive->count + 1,
                         sizeof *archive->members));
    member *made = &archive->members[archive->count];
    *made = (member){remat_text_copy(context, name), at, bytes, stored};
    if (!made->name)
        return REMAT_NO_MEMORY;
    archive->count++;
    return REMAT_OK;
}

static const member *find_pickle(torch_archive *archive)
{
    for (size_t i = 0; i < archive->count; i++) {
        const char *slash = strrchr(archive->members[i].name, '/');
        if (!slash || strcmp(slash, "/data.pkl") != 0)
            continue;
        archive->folder = archive->members[i].name;
        archive->folder_length = (int)(slash - archive->folder);
        return &archive->members[i];
    }
    return NULL;
}

static const member *find_storage(torch_archive *archive, const pickle_value *key)
{
    char name[NPZ_LONGEST_NAME + 1];
    snprintf(name, sizeof name, "%.*s/data/%.*s", archive->folder_length, archive->folder, (int)key->length, key->text);
    for (size_t i = 0; i < archive->count; i++) {
        const size_t at = (archive->next + i) % archive->count;
        if (strcmp(archive->members[at].name, name) == 0) {
            archive->next = at + 1;
            return &archive->members[at];
        }
    }
    return NULL;
}

/* ---- tensors ---- */

/* The item at a position of a value; NULL where there is none. */
static const pickle_value *item_at(const pickle *contents, const pickle_value *whole, unsigned position)
{
    uint32_t item = whole->first;
    while (item != PICKLE_NONE && position-- > 0)
        item = contents->items[item].next;
    return item == PICKLE_NONE ? NULL : &contents->values[contents->items[item].value];
}

/* The type of a storage's class, and the bytes of a value. */
static const char *find_dtype(const pickle_value *class, uint64_t *bytes)
{
    static const struct {
        const char *class, *dtype;
        uint64_t bytes;
    } types[] = {
        {"torch\nFloatStorage", "F32", 4},  {"torch\nHalfStorage", "F16", 2}, {"torch\nBFloat16Storage", "BF16", 2},
        {"torch\nDoubleStorage", "F64", 8}, {"torch\nLongStorage", "I64", 8}, {"torch\nIntStorage", "I32", 4},
        {"torch\nShortStorage", "I16", 2},  {"torch\nCharStorage", "I8", 1},  {"torch\nByteStorage", "U8", 1},
        {"torch\nBoolStorage", "BOOL", 1},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (class->kind == PICKLE_GLOBAL && pickle_is(class, types[i].class)) {
            *bytes = types[i].bytes;
            return types[i].dtype;
        }
    return NULL;
}

/* Reads the shape, and whether the values lie one after the other. */
static bool read_shape(const pickle *contents, const pickle_value *sizes, const pickle_value *strides,
                       safetensors_tensor *tensor, bool *contiguous)
{
    uint64_t step = 1;
    tensor->rank = 0;
    for (uint32_t i = sizes->first; i != PICKLE_NONE; i = contents->items[i].next) {
        const pickle_value *size = &contents->values[contents->items[i].value];
        if (tensor->rank == SAFETENSORS_MAX_RANK || size->kind != PICKLE_INTEGER || size->integer < 0)
            return false;
        tensor->dims[tensor->rank++] = (uint64_t)size->integer;
    }
    *contiguous = true;
    for (uint32_t d = tensor->rank; d-- > 0;) {
        const pickle_value *stride = item_at(contents, strides, d);
        if (!stride || stride->kind != PICKLE_INTEGER)
            return false;
        *contiguous = *contiguous && (tensor->dims[d] == 1 || stride->integer == (int64_t)step);
        if (!remat_multiply(step, tensor->dims[d], &step))
            return false;
    }
    tensor->values = step;
    return true;
}

/* _rebuild_tensor_v2(storage, offset, sizes, strides, ...), where storage is ("storage", class, key, device, count). */
static remat_status read_tensor(torch_archive *archive, const pickle_value *call, safetensors_tensor *tensor)
{
    const pickle *contents = &archive->contents;
    const pickle_value *storage = item_at(contents, call, 0), *offset = item_at(contents, call, 1);
    const pickle_value *sizes = item_at(contents, call, 2), *strides = item_at(contents, call, 3);
    if (!strides || storage->kind != PICKLE_STORAGE || offset->kind != PICKLE_INTEGER || offset->integer < 0 ||
        sizes->kind != PICKLE_SEQUENCE || strides->kind != PICKLE_SEQUENCE)
        return fail(archive, "a tensor of the pickle is not as torch.save writes it");
    const pickle_value *class = item_at(contents, storage, 1), *key = item_at(contents, storage, 2);
    uint64_t value_bytes = 1;
    bool contiguous = false;
    if (!key || key->kind != PICKLE_TEXT || !read_shape(contents, sizes, strides, tensor, &contiguous))
        return fail(archive, "a tensor of the pickle is not as torch.save writes it");
    const member *values = find_storage(archive, key);
    if (!values)
        return fail(archive, "the values of a tensor are not in the archive");
    tensor->dtype = find_dtype(class, &value_bytes);
    if (!tensor->dtype || !values->stored || !contiguous) {
        tensor->dtype = !tensor->dtype ? "unknown" : !values->stored ? "compressed" : "non-contiguous";
        tensor->begin = tensor->end = values->at;
        return REMAT_OK; /* only reading it is an error */
    }
    uint64_t begin = 0, bytes = 0;
    if (!remat_multiply((uint64_t)offset->integer, value_bytes, &begin) ||
        !remat_multiply(tensor->values, value_bytes, &bytes) || begin > values->bytes || bytes > values->bytes - begin)
        return fail(archive, "a tensor is larger than its values in the archive");
    tensor->begin = values->at + begin;
    tensor->end = tensor->begin + bytes;
    return REMAT_OK;
}

static remat_status add_tensor(torch_archive *archive, const char *name, const pickle_value *call)
{
    safetensors *file = archive->file;
    if (file->count == SAFETENSORS_MAX_ENTRIES)
        return fail(archive, "it has too many tensors");
    REMAT_TRY(
        remat_grow(file->context, (void **)&file->tensors, &file->capacity, file->count + 1, sizeof *file->tensors));
    safetensors_tensor *tensor = &file->tensors[file->count];
    *tensor = (safetensors_tensor){.name = remat_text_copy(file->context, name)};
    if (!tensor->name)
        return REMAT_NO_MEMORY;
    file->count++;
    return read_tensor(archive, call, tensor);
}

/* ---- dictionaries ---- */

enum { DEEPEST = 16, LONGEST = 1024 };
static const uint64_t MOST_VISITS = 2 * SAFETENSORS_MAX_ENTRIES;

static bool is_tensor(const pickle_value *value)
{
    return value->kind == PICKLE_CALL && pickle_is(value, "torch._utils\n_rebuild_tensor_v2");
}

/* Adds the tensors of a dictionary and of those in it. */
static remat_status walk(torch_archive *archive, const pickle_value *dict, const char *prefix, unsigned depth)
{
    const pickle *contents = &archive->contents;
    for (uint32_t i = dict->first; i != PICKLE_NONE; i = contents->items[i].next) {
        const pickle_value *key = &contents->values[contents->items[i].key];
        const pickle_value *value = &contents->values[contents->items[i].value];
        char name[LONGEST];
        if (++archive->visits > MOST_VISITS)
            return fail(archive, "the pickle has too many values");
        if (key->kind != PICKLE_TEXT && key->kind != PICKLE_INTEGER)
            continue;
        int length =
            key->kind == PICKLE_TEXT
                ? snprintf(name, sizeof name, "%s%s%.*s", prefix, *prefix ? "." : "", (int)key->length, key->text)
                : snprintf(name, sizeof name, "%s%s%" PRId64, prefix, *prefix ? "." : "", key->integer);
        if (length >= LONGEST || !remat_utf8_valid(name) || strcmp(name, "__metadata__") == 0)
            return fail(archive, "the name of a tensor is too long, or is none");
        if (is_tensor(value))
            REMAT_TRY(add_tensor(archive, name, value));
        else if (value->kind == PICKLE_DICT && depth < DEEPEST)
            REMAT_TRY(walk(archive, value, name, depth + 1));
    }
    return REMAT_OK;
}

/* The state dict of a checkpoint, or the dictionary itself if it has tensors. */
static const pickle_value *find_state(const pickle *contents, const pickle_value *dict)
{
    static const char *const names[] = {"state_dict", "model_state_dict", "model", "module", "net", "weights"};
    const pickle_value *found = dict;
    for (uint32_t i = dict->first; i != PICKLE_NONE; i = contents->items[i].next) {
        const pickle_value *key = &contents->values[contents->items[i].key];
        const pickle_value *value = &contents->values[contents->items[i].value];
        if (is_tensor(value))
            return dict;
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
            if (key->kind == PICKLE_TEXT && value->kind == PICKLE_DICT && pickle_is(key, names[n]))
                found = value;
    }
    return found;
}

static remat_status read_contents(torch_archive *archive, const member *where)
{
    safetensors *file = archive->file;
    if (!where->stored || where->bytes > SAFETENSORS_MAX_HEADER)
        return fail(archive, "data.pkl of the archive is compressed or too large");
    unsigned char *bytes = remat_alloc(file->context, where->bytes + 1, 1);
    if (!bytes)
        return REMAT_NO_MEMORY;
    remat_status status = data_file_read(&file->source, where->at, bytes, (size_t)where->bytes);
    if (status == REMAT_OK)
        status = pickle_read(file->context, bytes, (size_t)where->bytes, &archive->place, &archive->contents);
    if (status == REMAT_OK) {
        const pickle_value *root = &archive->contents.values[archive->contents.result];
        if (root->kind != PICKLE_DICT)
            status = fail(archive, "it holds an object, not a state dict; write one with "
                                   "torch.save(model.state_dict(), FILE)");
        else
            status = walk(archive, find_state(&archive->contents, root), "", 0);
    }
    pickle_release(&archive->contents);
    remat_release(file->context, bytes, where->bytes + 1, 1);
    return status;
}

remat_status torch_file_read(safetensors *file)
{
    torch_archive archive = {
        .file = file, .place = data_file_place(&file->source), .contents = {.context = file->context}};
    remat_status status = npz_each(&file->source, add_member, &archive);
    const member *where = status == REMAT_OK ? find_pickle(&archive) : NULL;
    if (where)
        status = read_contents(&archive, where);
    else if (status == REMAT_OK)
        status = fail(&archive, "it is an archive, but none that torch.save writes: it has no data.pkl");
    for (size_t i = 0; i < archive.count; i++)
        remat_text_release(file->context, archive.members[i].name);
    remat_release(file->context, archive.members, archive.capacity, sizeof *archive.members);
    return status;
}

remat_status torch_file_check_age(const safetensors *file)
{
    static const unsigned char start[] = {0x80, 0x02, 0x8a, 0x0a};
    unsigned char found[sizeof start] = {0};
    const remat_place place = data_file_place(&file->source);
    if (file->source.bytes < sizeof found)
        return REMAT_OK;
    REMAT_TRY(data_file_read(&file->source, 0, found, sizeof found));
    if (memcmp(start, found, sizeof start) != 0)
        return REMAT_OK;
    return remat_fail(file->context, REMAT_BAD_INPUT, &place,
                      "it is in the format of torch.save before PyTorch 1.6; load it there and save it again");
}
