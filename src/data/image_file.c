#include "data/image_file.h"

#include "base/alloc.h"
#include "base/names.h"
#include "data/data_file.h"

#include <string.h>

enum { MOST_PIXELS = 1 << 27, MOST_BYTES = 1 << 29 }; /* of an image; of a file */

bool image_is_named(const char *name)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg"};
    for (size_t i = 0; i < 3; i++)
        if (strlen(name) > strlen(endings[i]) && names_equal(name + strlen(name) - strlen(endings[i]), endings[i]))
            return true;
    return false;
}

remat_status image_allocate(image *made, const char *path, uint64_t width, uint64_t height)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    if (width == 0 || height == 0 || width > MOST_PIXELS / height)
        return remat_fail(made->context, REMAT_BAD_INPUT, &place, "an image of %llu x %llu points cannot be read",
                          (unsigned long long)width, (unsigned long long)height);
    made->width = width;
    made->height = height;
    made->pixels = remat_alloc(made->context, width * height, made->channels);
    return made->pixels ? REMAT_OK : REMAT_NO_MEMORY;
}

void image_end(image *made)
{
    if (made->context)
        remat_release(made->context, made->pixels, made->width * made->height, made->channels);
    *made = (image){0};
}

static remat_status read_contents(image *made, const data_file *file)
{
    static const unsigned char png[] = {0x89, 'P', 'N', 'G'}, jpeg[] = {0xff, 0xd8, 0xff};
    remat_place place = data_file_place(file);
    if (!file->held)
        return remat_fail(made->context, REMAT_BAD_INPUT, &place, "too large for an image");
    if (file->bytes > sizeof png && memcmp(file->held, png, sizeof png) == 0)
        return image_read_png(made, file->path, file->held, (size_t)file->bytes);
    if (file->bytes > sizeof jpeg && memcmp(file->held, jpeg, sizeof jpeg) == 0)
        return image_read_jpeg(made, file->path, file->held, (size_t)file->bytes);
    return remat_fail(made->context, REMAT_BAD_INPUT, &place, "neither PNG nor JPEG");
}

remat_status image_read(remat_context *context, const char *path, uint64_t channels, image *made)
{
    data_file file;
    *made = (image){.context = context, .channels = channels};
    remat_status status = data_file_open(context, path, MOST_BYTES, &file);
    if (status == REMAT_OK)
        status = read_contents(made, &file);
    data_file_close(&file);
    return status;
}

/* ---- scaling ---- */

/* The part of the image that is scaled, in points. */
typedef struct image_part {
    double left, top, width, height;
} image_part;

static image_part choose_part(const image *from, uint64_t width, uint64_t height, bool crops)
{
    image_part part = {0, 0, (double)from->width, (double)from->height};
    if (!crops)
        return part;
    if (from->width * height > from->height * width) {
        part.width = (double)(from->height * width) / (double)height;
        part.left = ((double)from->width - part.width) / 2;
    } else {
        part.height = (double)(from->width * height) / (double)width;
        part.top = ((double)from->height - part.height) / 2;
    }
    return part;
}

static uint64_t last_point(double end, uint64_t count)
{
    uint64_t point = (uint64_t)end;
    point += (double)point < end;
    return point < count ? point : count;
}

/* The mean over the area from (x0, y0) to (x1, y1); points at its border count by the share that lies inside. */
static double mean_of(const image *from, uint64_t channel, double x0, double x1, double y0, double y1)
{
    double sum = 0, area = 0;
    for (uint64_t y = (uint64_t)y0, rows = last_point(y1, from->height); y < rows; y++) {
        double top = (double)y > y0 ? (double)y : y0, bottom = (double)(y + 1) < y1 ? (double)(y + 1) : y1;
        for (uint64_t x = (uint64_t)x0, columns = last_point(x1, from->width); x < columns; x++) {
            double left = (double)x > x0 ? (double)x : x0, right = (double)(x + 1) < x1 ? (double)(x + 1) : x1;
            double share = (right - left) * (bottom - top);
            sum += share * from->pixels[(y * from->width + x) * from->channels + channel];
            area += share;
        }
    }
    return area > 0 ? sum / area : 0;
}

void image_fit(const image *from, uint64_t width, uint64_t height, bool crops, unsigned char *to)
{
    const image_part part = choose_part(from, width, height, crops);
    const double across = part.width / (double)width, down = part.height / (double)height;
    for (uint64_t c = 0; c < from->channels; c++)
        for (uint64_t y = 0; y < height; y++)
            for (uint64_t x = 0; x < width; x++) {
                double x0 = part.left + across * (double)x, y0 = part.top + down * (double)y;
                *to++ = (unsigned char)(mean_of(from, c, x0, x0 + across, y0, y0 + down) + 0.5);
            }
}
