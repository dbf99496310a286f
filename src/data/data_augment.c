#include "data/data_augment.h"

#include "base/alloc.h"

#include <remat/random.h>

#include <string.h>

/* Streams of layers have small numbers; those of changes start here. */
#define AUGMENT_STREAM 0xC0000000u

/* What is drawn for a sample, by its number in the stream. */
enum {
    DRAW_MIRROR,
    DRAW_TURN,
    DRAW_SHIFT_X,
    DRAW_SHIFT_Y,
    DRAW_SIZE,
    DRAW_CROP_X,
    DRAW_CROP_Y,
    DRAW_CUT_X,
    DRAW_CUT_Y,
    DRAWS = 16
};

static bool is_image(const data_field *field)
{
    return !data_field_is_integer(field) && field->shape[1] > 1 && field->shape[2] > 1;
}

void data_augment_begin(data_augment *augment, const dataset_settings *settings, const data_needs *needs)
{
    *augment = (data_augment){.crop = 1};
    if (!settings || (settings->type != DATASET_NPY && settings->type != DATASET_IMAGES))
        return;
    augment->flip = settings->flip;
    augment->shift = settings->shift;
    augment->cutout = settings->cutout;
    augment->crop = settings->crop > 0 ? settings->crop : 1;
    augment->is_on = augment->flip || augment->shift || augment->cutout || augment->crop < 1;
    for (size_t i = 0; i < needs->input_count; i++)
        if (is_image(&needs->inputs[i]) && needs->inputs[i].values > augment->room)
            augment->room = needs->inputs[i].values;
}

remat_status data_augment_allocate(data_augment *augment, remat_context *context)
{
    if (!augment->is_on)
        return REMAT_OK;
    if (!augment->room)
        return remat_fail(context, REMAT_INVALID, NULL,
                          "flip, shift, crop and cutout need an input that is an image, such as input_shape = 3:32:32");
    augment->copy = remat_alloc(context, augment->room, sizeof *augment->copy);
    return augment->copy ? REMAT_OK : REMAT_NO_MEMORY;
}

void data_augment_end(data_augment *augment, remat_context *context)
{
    remat_release(context, augment->copy, augment->room, sizeof *augment->copy);
    *augment = (data_augment){0};
}

/* ---- one image ---- */

typedef struct drawn {
    remat_random stream;
    uint64_t first; /* number of the sample's first draw */
} drawn;

static uint64_t below(const drawn *from, unsigned which, uint64_t bound)
{
    return remat_random_below(&from->stream, from->first + which, bound);
}

/* Where a point of the new image comes from in the old one, along one direction: -1 is outside. */
static int64_t source_of(uint64_t at, uint64_t length, bool mirrored, int64_t shift, uint64_t part, uint64_t start)
{
    if (mirrored)
        at = length - 1 - at;
    int64_t moved = (int64_t)at - shift;
    if (moved < 0 || moved >= (int64_t)length)
        return -1;
    return (int64_t)(start +
                     (uint64_t)moved * part / length); /* the part is scaled to the whole, by the nearest point */
}

/* What happens along one direction. */
typedef struct direction {
    bool mirrored;
    int64_t shift;
    uint64_t part, start;
} direction;

static direction draw_direction(const data_augment *augment, const drawn *from, uint64_t length, bool mirrors,
                                unsigned mirror, unsigned shift, unsigned crop)
{
    direction made = {.part = length};
    made.mirrored = mirrors && below(from, mirror, 2);
    uint64_t most = augment->shift < length ? augment->shift : length - 1;
    made.shift = (int64_t)below(from, shift, 2 * most + 1) - (int64_t)most;
    if (augment->crop < 1) {
        /* One draw for both directions: the proportions stay. */
        double share =
            augment->crop + (1 - augment->crop) * (double)remat_random_uniform(&from->stream, from->first + DRAW_SIZE);
        made.part = (uint64_t)((double)length * share + 0.5);
        made.part = made.part < 1 ? 1 : made.part < length ? made.part : length;
        made.start = below(from, crop, length - made.part + 1);
    }
    return made;
}

static void move_points(const data_field *field, const direction *x, const direction *y, const float *from, float *to)
{
    const uint64_t height = field->shape[1], width = field->shape[2];
    for (uint64_t c = 0; c < field->shape[0]; c++, from += height * width)
        for (uint64_t row = 0; row < height; row++) {
            int64_t old_row = source_of(row, height, y->mirrored, y->shift, y->part, y->start);
            for (uint64_t column = 0; column < width; column++) {
                int64_t old = source_of(column, width, x->mirrored, x->shift, x->part, x->start);
                *to++ = old_row < 0 || old < 0 ? 0 : from[(uint64_t)old_row * width + (uint64_t)old];
            }
        }
}

/* A square around a drawn point; what lies outside of the image is left out. */
static void cut_out(const data_augment *augment, const drawn *from, const data_field *field, float *to)
{
    const uint64_t height = field->shape[1], width = field->shape[2], half = augment->cutout / 2;
    uint64_t x = below(from, DRAW_CUT_X, width), y = below(from, DRAW_CUT_Y, height);
    uint64_t left = x > half ? x - half : 0, top = y > half ? y - half : 0;
    uint64_t right = x + augment->cutout - half, bottom = y + augment->cutout - half;
    for (uint64_t c = 0; c < field->shape[0]; c++)
        for (uint64_t row = top; row < bottom && row < height; row++)
            for (uint64_t column = left; column < right && column < width; column++)
                to[(c * height + row) * width + column] = 0;
}

void data_augment_sample(const data_augment *augment, const data_needs *needs, const data_draw *draw,
                         void *const *inputs)
{
    const drawn from = {
        remat_random_stream(draw->seed, AUGMENT_STREAM + (uint32_t)(draw->epoch >> 32), (uint32_t)draw->epoch),
        draw->position * DRAWS};
    for (size_t i = 0; i < needs->input_count; i++) {
        const data_field *field = &needs->inputs[i];
        if (!is_image(field))
            continue;
        const direction x = draw_direction(augment, &from, field->shape[2],
                                           augment->flip == FLIP_HORIZONTAL || augment->flip == FLIP_BOTH, DRAW_MIRROR,
                                           DRAW_SHIFT_X, DRAW_CROP_X);
        const direction y = draw_direction(augment, &from, field->shape[1],
                                           augment->flip == FLIP_VERTICAL || augment->flip == FLIP_BOTH, DRAW_TURN,
                                           DRAW_SHIFT_Y, DRAW_CROP_Y);
        memcpy(augment->copy, inputs[i], field->values * sizeof(float));
        move_points(field, &x, &y, augment->copy, inputs[i]);
        if (augment->cutout)
            cut_out(augment, &from, field, inputs[i]);
    }
}
