/* Samples from a folder of images: a folder for each class, in it PNG and JPEG files. The images are held in memory as
 * bytes, in the size that the network reads. */
#include "data/data_set.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "data/folder_names.h"
#include "data/image_file.h"

#include <string.h>

typedef struct images_set {
    data_set set;
    name_list files; /* the path of each sample */
    int32_t *classes;
    size_t class_capacity;
    unsigned char *bytes; /* samples x values, channels one after the other */
    uint64_t byte_count, values;
    float factor;
    uint64_t skipped; /* files that are no images */
} images_set;

static void close_images(data_set *set)
{
    images_set *images = (images_set *)set;
    name_list_end(set->context, &images->files);
    remat_release(set->context, images->classes, images->class_capacity, sizeof *images->classes);
    remat_release(set->context, images->bytes, images->byte_count, 1);
    remat_release(set->context, images, 1, sizeof *images);
}

static remat_status read_images(data_set *set, uint64_t sample, void *const *inputs, void *labels)
{
    const images_set *images = (const images_set *)set;
    const unsigned char *from = images->bytes + sample * images->values;
    float *to = inputs[0];
    for (uint64_t i = 0; i < images->values; i++)
        to[i] = (float)from[i] / images->factor;
    if (labels && set->needs->labels.values)
        *(int32_t *)labels = images->classes[sample];
    return REMAT_OK;
}

static remat_status read_class(data_set *set, uint64_t sample, int32_t *id)
{
    *id = ((const images_set *)set)->classes[sample];
    return REMAT_OK;
}

static const char *file_of(const data_set *set, uint64_t sample)
{
    return ((const images_set *)set)->files.names[sample];
}

/* ---- finding files ---- */

static remat_status add_file(images_set *images, const char *path, int32_t class)
{
    REMAT_TRY(remat_grow(images->set.context, (void **)&images->classes, &images->class_capacity,
                         images->files.count + 1, sizeof *images->classes));
    images->classes[images->files.count] = class;
    return name_list_add(images->set.context, &images->files, path);
}

/* The images in a folder, all of one class. */
static remat_status add_folder(images_set *images, const char *folder, int32_t class)
{
    remat_context *context = images->set.context;
    name_list names = {0};
    remat_status status = folder_names_find(context, folder, FOLDER_FILES, &names);
    for (size_t i = 0; i < names.count && status == REMAT_OK; i++) {
        if (!image_is_named(names.names[i])) {
            images->skipped++;
            continue;
        }
        char *path = data_path_at(context, folder, names.names[i], 0);
        status = path ? add_file(images, path, class) : REMAT_NO_MEMORY;
        remat_text_release(context, path);
    }
    name_list_end(context, &names);
    return status;
}

/* The class of a folder's name: a new one, or one that the weights know. */
static remat_status class_of(images_set *images, const data_request *request, const char *name, int32_t *class)
{
    data_encoding *encoding = request->encoding;
    size_t known = data_encoding_find_class(encoding, name);
    uint64_t bound = request->needs->labels.bound;
    *class = -1;
    if (!request->needs->labels.values)
        return REMAT_OK;
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = request->inputs;
    if (known == SIZE_MAX && request->encoding_is_given && encoding->classes.count)
        return remat_fail(images->set.context, REMAT_BAD_INPUT, &place,
                          "the folder '%.60s' is not a class of the weights", name);
    if (known == SIZE_MAX) {
        known = encoding->classes.count;
        REMAT_TRY(name_list_add(encoding->context, &encoding->classes, name));
    }
    if (known >= bound)
        return remat_fail(
            images->set.context, REMAT_BAD_INPUT, &place,
            "'%.60s' is folder %zu, and the model has %llu classes, which are the units of its last layer", name,
            known + 1, (unsigned long long)bound);
    *class = (int32_t)known;
    return REMAT_OK;
}

static remat_status add_class_folder(images_set *images, const data_request *request, const char *root,
                                     const char *name)
{
    int32_t class;
    REMAT_TRY(class_of(images, request, name, &class));
    char *folder = data_path_at(request->context, root, name, 0);
    remat_status status = folder ? add_folder(images, folder, class) : REMAT_NO_MEMORY;
    remat_text_release(request->context, folder);
    return status;
}

static remat_status find_images(images_set *images, const data_request *request, const char *root)
{
    remat_context *context = request->context;
    name_list folders = {0};
    remat_status status = folder_names_find(context, root, FOLDER_FOLDERS, &folders);
    for (size_t i = 0; i < folders.count && status == REMAT_OK; i++)
        status = add_class_folder(images, request, root, folders.names[i]);
    /* For predictions the images may stand in the folder itself. */
    if (status == REMAT_OK && !request->needs->labels.values)
        status = add_folder(images, root, -1);
    name_list_end(context, &folders);
    REMAT_TRY(status);
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = root;
    if (images->files.count == 0)
        return remat_fail(context, REMAT_BAD_INPUT, &place,
                          "no images; there must be a folder of PNG or JPEG files for each "
                          "class");
    if (images->skipped)
        remat_warn(context, &place, "%llu file%s neither .png nor .jpg and %s left out",
                   (unsigned long long)images->skipped, images->skipped == 1 ? " is" : "s are",
                   images->skipped == 1 ? "is" : "are");
    uint64_t classes = request->encoding->classes.count, bound = request->needs->labels.bound;
    if (request->needs->labels.values && !request->encoding_is_given && classes < bound)
        remat_warn(context, &place, "%llu folders, and the model has %llu classes", (unsigned long long)classes,
                   (unsigned long long)bound);
    return REMAT_OK;
}

/* ---- reading them ---- */

static remat_status load_image(images_set *images, const data_request *request, size_t number)
{
    const uint64_t *shape = request->needs->inputs[0].shape;
    const char *path = images->files.names[number];
    image read;
    remat_status status = image_read(request->context, path, shape[0], &read);
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    if (status == REMAT_OK && request->settings->fit == FIT_ERROR &&
        (read.height != shape[1] || read.width != shape[2]))
        status = remat_fail(request->context, REMAT_BAD_INPUT, &place,
                            "%llu x %llu points; the model takes %llu x %llu; fit = crop or stretch scales images",
                            (unsigned long long)read.width, (unsigned long long)read.height,
                            (unsigned long long)shape[2], (unsigned long long)shape[1]);
    if (status == REMAT_OK)
        image_fit(&read, shape[2], shape[1], request->settings->fit == FIT_CROP,
                  images->bytes + number * images->values);
    image_end(&read);
    return status;
}

static remat_status load_images(images_set *images, const data_request *request)
{
    uint64_t bytes;
    images->values = request->needs->inputs[0].values;
    if (!remat_multiply(images->files.count, images->values, &bytes))
        return remat_fail(request->context, REMAT_NO_MEMORY, NULL, "the images have 2^63 points or more");
    images->bytes = remat_alloc(request->context, bytes, 1);
    if (!images->bytes)
        return REMAT_NO_MEMORY;
    images->byte_count = bytes;
    for (size_t i = 0; i < images->files.count; i++)
        REMAT_TRY(load_image(images, request, i));
    images->set.samples = images->files.count;
    return REMAT_OK;
}

static remat_status open_images(images_set *images, const data_request *request)
{
    const data_needs *needs = request->needs;
    const data_field *input = &needs->inputs[0];
    remat_place place = REMAT_PLACE_NOWHERE;
    place.field = "inputs";
    if (needs->input_count != 1 || data_field_is_integer(input) || (input->shape[0] != 1 && input->shape[0] != 3) ||
        input->shape[1] < 2)
        return remat_fail(
            request->context, REMAT_INVALID, NULL,
            "images feed a model with one input of 1 (grey) or 3 channels, such as input_shape = 3:32:32");
    if (needs->labels.values && !data_field_is_integer(&needs->labels))
        return remat_fail(request->context, REMAT_INVALID, NULL,
                          "a folder of images has one class for a sample; the loss must be a cross_entropy");
    if (needs->labels.values > 1)
        return remat_fail(request->context, REMAT_INVALID, NULL,
                          "a folder of images has one class for a sample, and the loss takes %llu rows of logits; a "
                          "flatten layer before the last fully_connected makes them one",
                          (unsigned long long)needs->labels.values);
    if (!request->inputs || data_path_count(request->inputs) != 1)
        return remat_fail(request->context, REMAT_INVALID, &place, "name one folder");
    char *root = data_path_at(request->context, request->folder, request->inputs, 0);
    if (!root)
        return REMAT_NO_MEMORY;
    remat_status status = find_images(images, request, root);
    remat_text_release(request->context, root);
    return status == REMAT_OK ? load_images(images, request) : status;
}

remat_status data_images_open(const data_request *request, data_set **set)
{
    images_set *images = remat_alloc_zeroed(request->context, 1, sizeof *images);
    if (!images)
        return REMAT_NO_MEMORY;
    images->set = (data_set){.context = request->context,
                             .needs = request->needs,
                             .read = read_images,
                             .close = close_images,
                             .read_class = read_class,
                             .file = file_of};
    images->factor = request->settings->scale_bytes ? 255 : 1;
    remat_status status = open_images(images, request);
    if (status == REMAT_OK)
        *set = &images->set;
    else
        close_images(&images->set);
    return status;
}
