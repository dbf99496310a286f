/* Samples from .npy and .npz files, one array an input and one for the labels. */
#include "data/data_set.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "data/npy.h"
#include "data/npz.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PART_VALUES = 2048 }; /* values that are converted at once */

typedef struct npy_array {
    const data_field *field;
    data_file file;
    npy_header header;
    char member[NPZ_LONGEST_NAME + 1]; /* of an archive; "" for a .npy file */
} npy_array;

typedef struct npy_set {
    data_set set;
    bool scales_bytes;  /* those of inputs become 0 .. 1 */
    size_t array_count; /* the inputs, then the labels */
    npy_array arrays[LAYER_MAX_INPUTS + 1];
    unsigned char part[PART_VALUES * sizeof(double)];
} npy_set;

static void close_npy(data_set *set)
{
    npy_set *npy = (npy_set *)set;
    for (size_t i = 0; i < npy->array_count; i++)
        data_file_close(&npy->arrays[i].file);
    remat_release(set->context, npy, 1, sizeof *npy);
}

/* ---- values ---- */

static remat_status check_ids(const npy_array *array, uint64_t sample, uint64_t first, const int32_t *ids, size_t count)
{
    size_t bad = data_first_bad_id(array->field, ids, count);
    if (bad == count)
        return REMAT_OK;
    char what[80];
    snprintf(what, sizeof what, "value %llu of sample %llu", (unsigned long long)(first + bad),
             (unsigned long long)sample);
    remat_place place = data_file_place(&array->file);
    return data_fail_id(array->file.context, &place, array->field, what, ids[bad]);
}

/* Whether values lie in the file just as the network wants them. */
static bool is_plain(const npy_array *array)
{
    if (data_field_is_integer(array->field))
        return array->header.type == NPY_INT32;
    return array->header.type == (NPY_FLOAT32);
}

static remat_status read_array(npy_set *npy, const npy_array *array, uint64_t sample, void *to)
{
    uint64_t values = array->field->values;
    size_t size = npy_type_size(array->header.type);
    uint64_t at = array->header.data_offset + sample * values * size;
    if (is_plain(array)) {
        REMAT_TRY(data_file_read(&array->file, at, to, values * size));
        return data_field_is_integer(array->field) ? check_ids(array, sample, 0, to, values) : REMAT_OK;
    }
    for (uint64_t done = 0; done < values;) {
        size_t count = values - done < PART_VALUES ? (size_t)(values - done) : PART_VALUES;
        REMAT_TRY(data_file_read(&array->file, at + done * size, npy->part, count * size));
        if (data_field_is_integer(array->field)) {
            int32_t *ids = (int32_t *)to + done;
            npy_to_int32(array->header.type, npy->part, count, ids);
            REMAT_TRY(check_ids(array, sample, done, ids, count));
        } else {
            npy_to_float(array->header.type, npy->part, count, (float *)to + done);
            if (npy->scales_bytes && array->header.type == NPY_UINT8)
                for (size_t i = 0; i < count; i++)
                    ((float *)to)[done + i] /= 255.0f;
        }
        done += count;
    }
    return REMAT_OK;
}

static remat_status read_npy(data_set *set, uint64_t sample, void *const *inputs, void *labels)
{
    npy_set *npy = (npy_set *)set;
    for (size_t i = 0; i < set->needs->input_count; i++)
        REMAT_TRY(read_array(npy, &npy->arrays[i], sample, inputs[i]));
    if (labels && npy->array_count > set->needs->input_count)
        return read_array(npy, &npy->arrays[set->needs->input_count], sample, labels);
    return REMAT_OK;
}

static remat_status read_class(data_set *set, uint64_t sample, int32_t *id)
{
    npy_set *npy = (npy_set *)set;
    return read_array(npy, &npy->arrays[set->needs->input_count], sample, id);
}

/* ---- opening ---- */

static remat_status check_id_part(const npy_array *array, const void *part, size_t count, uint64_t before)
{
    int32_t ids[PART_VALUES];
    npy_to_int32(array->header.type, part, count, ids);
    size_t bad = data_first_bad_id(array->field, ids, count);
    if (bad == count)
        return REMAT_OK;
    uint64_t at = before + bad, values = array->field->values;
    return check_ids(array, at / values, at % values, ids + bad, 1);
}

static remat_status check_number_part(const npy_array *array, const void *part, size_t count, uint64_t before)
{
    float numbers[PART_VALUES];
    size_t bad = 0;
    npy_to_float(array->header.type, part, count, numbers);
    while (bad < count && isfinite(numbers[bad]))
        bad++;
    if (bad == count)
        return REMAT_OK;
    double number = (double)numbers[bad];
    if (array->header.type == NPY_FLOAT64)
        memcpy(&number, (const char *)part + bad * sizeof number, sizeof number);
    remat_place place = data_file_place(&array->file);
    unsigned long long at = before + bad, values = array->field->values;
    if (isfinite(number))
        return remat_fail(array->file.context, REMAT_BAD_INPUT, &place,
                          "value %llu of sample %llu is %g, which is too large for a float", at % values, at / values,
                          number);
    return remat_fail(array->file.context, REMAT_BAD_INPUT, &place,
                      "value %llu of sample %llu is %s; it must be a finite number", at % values, at / values,
                      isnan(number) ? "nan"
                      : number > 0  ? "inf"
                                    : "-inf");
}

/* All values once, so that a bad one is found now and not in the middle of the training. */
static remat_status check_all_values(npy_set *npy, const npy_array *array)
{
    uint64_t values = array->header.values;
    size_t size = npy_type_size(array->header.type);
    bool ids = data_field_is_integer(array->field);
    if (!ids && npy_type_is_integer(array->header.type))
        return REMAT_OK;
    for (uint64_t done = 0; done < values;) {
        size_t count = values - done < PART_VALUES ? (size_t)(values - done) : PART_VALUES;
        REMAT_TRY(data_file_read(&array->file, array->header.data_offset + done * size, npy->part, count * size));
        REMAT_TRY((ids ? check_id_part : check_number_part)(array, npy->part, count, done));
        done += count;
    }
    return REMAT_OK;
}

static remat_status check_array(npy_set *npy, const npy_array *array, const char *what)
{
    remat_context *context = npy->set.context;
    const npy_header *header = &array->header;
    remat_place place = data_file_place(&array->file);
    if (header->rank == 0)
        return remat_fail(context, REMAT_BAD_INPUT, &place, "a single number; the first dimension must count samples");
    uint64_t values = 1;
    for (uint32_t i = 1; i < header->rank; i++)
        if (!remat_multiply(values, header->dims[i], &values))
            return remat_fail(context, REMAT_BAD_INPUT, &place, "a sample has 2^63 values or more");
    if (values != array->field->values)
        return remat_fail(context, REMAT_BAD_INPUT, &place, "a sample has %llu values; %s of the model takes %llu",
                          (unsigned long long)values, what, (unsigned long long)array->field->values);
    if (data_field_is_integer(array->field) && !npy_type_is_integer(header->type))
        return remat_fail(context, REMAT_BAD_INPUT, &place,
                          "values of type %s; %s of the model takes whole numbers (int32, int64 or uint8)",
                          npy_type_name(header->type), what);
    if (array != npy->arrays && header->dims[0] != npy->arrays[0].header.dims[0])
        return remat_fail(context, REMAT_BAD_INPUT, &place, "%llu samples; %s has %llu",
                          (unsigned long long)header->dims[0], npy->arrays[0].file.path,
                          (unsigned long long)npy->arrays[0].header.dims[0]);
    return check_all_values(npy, array);
}

/* ---- files ---- */

/* Names under which arrays are looked for in an archive, and those of the labels that go with them. */
static const char *const input_names[] = {"x", "x_train", "images", "inputs", "data", "X", "arr_0", NULL};
static const char *const label_names[] = {"y", "y_train", "labels", "labels", "target", "y", "arr_1"};

/* The name of the labels that go with an array of inputs: x_test has y_test. */
static void name_labels(const char *input, char labels[NPZ_LONGEST_NAME + 1])
{
    snprintf(labels, NPZ_LONGEST_NAME + 1, "%s", input);
    if (input[0] == 'x' || input[0] == 'X')
        labels[0] = 'y';
    for (size_t i = 0; input_names[i]; i++)
        if (strcmp(input, input_names[i]) == 0)
            snprintf(labels, NPZ_LONGEST_NAME + 1, "%s", label_names[i]);
}

/* Opens "FILE" or "FILE:NAME". An archive is entered at NAME, or at the first of `names` that it has. */
static remat_status open_file(npy_array *array, remat_context *context, char *path, const char *const *names)
{
    const char *stated[] = {NULL, NULL};
    char *colon = strrchr(path, ':');
    if (colon && colon[1] && !strchr(colon, '/') && access(path, F_OK) != 0) {
        *colon = '\0';
        stated[0] = colon + 1;
    }
    bool is_archive;
    REMAT_TRY(data_file_open(context, path, DATA_HELD_BYTES, &array->file));
    REMAT_TRY(npz_is_archive(&array->file, &is_archive));
    remat_place place = data_file_place(&array->file);
    if (is_archive)
        return npz_enter(&array->file, stated[0] ? stated : names, array->member);
    if (stated[0])
        return remat_fail(context, REMAT_BAD_INPUT, &place, "not a .npz file, so it has no array '%.60s'", stated[0]);
    return REMAT_OK;
}

static remat_status open_array(npy_set *npy, const data_request *request, const char *list, size_t position,
                               const data_field *field, const char *what, const char *const *names)
{
    char *path = data_path_at(request->context, request->folder, list, position);
    if (!path)
        return REMAT_NO_MEMORY;
    size_t room = strlen(path) + 1; /* opening may cut it */
    npy_array *array = &npy->arrays[npy->array_count++];
    array->field = field;
    remat_status status = open_file(array, request->context, path, names);
    remat_release(request->context, path, room, 1);
    REMAT_TRY(status);
    REMAT_TRY(npy_read_header(&array->file, &array->header));
    return check_array(npy, array, what);
}

/* Labels are in a file of their own, or in the archive of the inputs. */
static remat_status open_labels(npy_set *npy, const data_request *request)
{
    char name[NPZ_LONGEST_NAME + 1];
    const char *const names[] = {name, NULL};
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "labels";
    name_labels(npy->arrays[0].member, name);
    if (request->labels)
        return open_array(npy, request, request->labels, 0, &request->needs->labels, "the loss", names);
    if (!npy->arrays[0].member[0])
        return remat_fail(request->context, REMAT_INVALID, &place, "the loss needs labels; name their .npy file");
    /* The path of the inputs is known to be good; a list of one path has no comma in it. */
    data_request same = *request;
    same.folder = NULL;
    return open_array(npy, &same, npy->arrays[0].file.path, 0, &request->needs->labels, "the loss", names);
}

static remat_status open_arrays(npy_set *npy, const data_request *request)
{
    const data_needs *needs = request->needs;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "inputs";
    size_t files = request->inputs ? data_path_count(request->inputs) : 0;
    if (files != needs->input_count)
        return remat_fail(request->context, REMAT_INVALID, &place,
                          "%zu files for %zu inputs of the model; give one .npy file an input, with commas between",
                          files, needs->input_count);
    for (size_t i = 0; i < files; i++) {
        char what[32];
        snprintf(what, sizeof what, "input %zu", i);
        REMAT_TRY(open_array(npy, request, request->inputs, i, &needs->inputs[i], what, input_names));
    }
    if (needs->labels.values)
        REMAT_TRY(open_labels(npy, request));
    npy->set.samples = npy->array_count ? npy->arrays[0].header.dims[0] : 0;
    return REMAT_OK;
}

remat_status data_npy_open(const data_request *request, data_set **set)
{
    npy_set *npy = remat_alloc_zeroed(request->context, 1, sizeof *npy);
    if (!npy)
        return REMAT_NO_MEMORY;
    npy->set = (data_set){.context = request->context,
                          .needs = request->needs,
                          .read = read_npy,
                          .close = close_npy,
                          .read_class = read_class};
    npy->scales_bytes = request->settings->scale_bytes;
    remat_status status = open_arrays(npy, request);
    if (status == REMAT_OK)
        *set = &npy->set;
    else
        close_npy(&npy->set);
    return status;
}
