/* PNG and JPEG files as pixels. */
#ifndef REMAT_DATA_IMAGE_FILE_H
#define REMAT_DATA_IMAGE_FILE_H

#include <stdbool.h>

#include "base/error.h"

/* Pixels row by row, `channels` bytes each: 1 (grey) or 3 (red, green, blue). */
typedef struct image {
    remat_context *context;
    uint64_t width, height, channels;
    unsigned char *pixels;
} image;

/* Whether a file of this name is one that can be read, by its ending. */
bool image_is_named(const char *name);

/* Reads a file; what it is, its first bytes say. Colours become grey or the other way round, as `channels` wants. A struct of
 * zeros, and one whose reading failed, may be ended. REMAT_BAD_INPUT, REMAT_INVALID if a library is missing, REMAT_IO,
 * REMAT_NO_MEMORY. */
remat_status image_read(remat_context *context, const char *path, uint64_t channels, image *made);
void image_end(image *made);

/* Scales it to width x height, each pixel the mean of the area that it covers. If `crops`, the middle of the image that has
 * the right proportions is scaled; otherwise all of it. `to` has room for all channels, one after the other. */
void image_fit(const image *from, uint64_t width, uint64_t height, bool crops, unsigned char *to);

/* For the readers: room for an image. REMAT_BAD_INPUT if it has no pixels or absurdly many. */
remat_status image_allocate(image *made, const char *path, uint64_t width, uint64_t height);
remat_status image_read_png(image *made, const char *path, const unsigned char *bytes, size_t count);
remat_status image_read_jpeg(image *made, const char *path, const unsigned char *bytes, size_t count);

#endif
