/* Convolutions over flat images.
 *
 * Each channel of a few images is copied, with its padding of zeros, into one long row, a plane:
 *
 *      image 0                      image 1
 *      0 0 0 0 a b c 0 d e f 0 ...  0 0 0 0 g h i 0 j k l 0 ...
 *              '---------' pitch
 *
 * The output at place p of such a row is a sum over taps of weight[tap] * plane[p + offset[tap]], whatever the size of
 * the kernel. This is a GEMM whose right-hand side has shifted copies of one plane as its rows, so that none of
 * them has to be stored. Vectors run along p without regard to rows and images. What they compute between the rows is
 * thrown away. That is little, unless rows are narrow, because the zeros behind a row serve as those before the next row,
 * and those below an image as those above the next image. Where it would be much, and in the gradient of the weights,
 * vectors hold output channels instead, and single values of the planes are repeated in all lanes.
 *
 * A stride cuts the source into phases, each of which is a plane: phase f holds the columns f, f + stride, f + 2 stride
 * and so on. Then neighbours in the output are neighbours in a plane.
 *
 * Taps that are `dilation` places apart only have other offsets. Groups of channels are convolutions side by side.
 *
 * The gradient of the input is a convolution of the same kind over the gradient of the output, one for each phase. */
#ifndef REMAT_BACKEND_CPU_FAST_CONVOLVE_FLAT_H
#define REMAT_BACKEND_CPU_FAST_CONVOLVE_FLAT_H

#include "backend/cpu/fast_gemm_kernel.h"

/* One axis, height or width. */
typedef struct flat_axis {
    size_t size;     /* of the source */
    ptrdiff_t first; /* the place in the source under the first tap of the first output; may be in the padding */
    size_t stride, taps, dilation;
    size_t outputs;
    size_t pitch; /* of a piece: values from row to row, or rows from image to image */
} flat_axis;

typedef struct flat_shape {
    flat_axis high, wide;
    size_t channels; /* of the source that are read: all of them, or those of a group */
    size_t image;    /* of the source: values from image to image */
    size_t images;   /* that lie one behind the other */
    size_t length;   /* of a row of outputs, whole vectors */
    size_t plane;    /* from plane to plane */
    size_t vectors;  /* that cover all outputs */
} flat_shape;

/* How a convolution is cut into pieces that fit the scratch. Follows from the sizes alone. */
typedef struct flat_cut {
    size_t images, rows, columns; /* the largest piece: several images only where whole ones fit */
    size_t channels;              /* of the source at a time */
    size_t most_length;           /* of a row of outputs of any piece */
} flat_cut;

/* A piece of the output: images, rows and columns, and where it begins. */
typedef struct flat_piece {
    flat_shape shape;
    size_t image, row, column;
} flat_piece;

/* Where the results of a piece are written: rows and columns of an image are `step_h` and `step_w` values apart. */
typedef struct flat_target {
    float *to; /* the first output of the first image */
    size_t image, step_h, step_w;
    bool add;
} flat_target;

/* The scratch of a thread, in values, 1 MiB in all: planes; rows of outputs; the offsets of taps in the planes; the places
 * in a row where vectors begin. */
#define FLAT_PLANES  ((size_t)96 << 10)
#define FLAT_ROWS    ((size_t)64 << 10)
#define FLAT_OFFSETS ((size_t)92 << 10)
#define FLAT_PLACES  ((size_t)4 << 10)
_Static_assert((FLAT_PLANES + FLAT_ROWS + FLAT_OFFSETS + FLAT_PLACES) * sizeof(float) <= FAST_SCRATCH_BYTES,
               "the scratch is too small");
typedef struct flat_scratch {
    float *planes, *rows;
    int32_t *offsets, *places;
} flat_scratch;
static inline flat_scratch flat_scratch_of(const kernel_run *run, int thread)
{
    float *planes = fast_scratch(run, thread), *rows = planes + FLAT_PLANES;
    int32_t *offsets = (int32_t *)(rows + FLAT_ROWS);
    return (flat_scratch){planes, rows, offsets, offsets + FLAT_OFFSETS};
}

/* The convolution of one group of a window. */
flat_shape FAST(flat_window)(const operation_window *window);

/* False where not even the smallest piece fits: the kernel is larger than about 300 x 300. A piece has at most
 * `most_images` images, and rows of about `length` outputs. Of the shape, axes and channels are read. */
bool FAST(flat_cut_make)(const flat_shape *whole, size_t batch, size_t most_images, size_t length, flat_cut *cut);
size_t FAST(flat_cut_count)(const flat_shape *whole, size_t batch, const flat_cut *cut);
flat_piece FAST(flat_cut_piece)(const flat_shape *whole, size_t batch, const flat_cut *cut, size_t index);

/* Copies `count` channels from `first` on of the piece's images into planes; `source` is the first of the channels that
 * are read, of the whole batch. */
void FAST(flat_load)(const flat_piece *piece, const float *source, size_t first, size_t count, float *planes);

/* The offsets of all taps of `count` channels, in the order channel, row, column. */
void FAST(flat_offsets)(const flat_shape *shape, size_t count, int32_t *offsets);

/* The places of the shape->vectors vectors that cover all outputs without overlap. */
void FAST(flat_places)(const flat_shape *shape, int32_t *places);

/* The places of all outputs, one by one. */
void FAST(flat_outputs)(const flat_shape *shape, int32_t *places);

/* Writes one row of outputs to the target. */
void FAST(flat_store)(const flat_piece *piece, const float *row, const flat_target *target);

/* A GEMM. Value (r, k) of the left-hand side is in the planes, at places[r] + steps[k]; one of r and k counts
 * taps, the other outputs. The right-hand side is a packed panel: a row of up to TILE_VECTORS vectors for each k. */
typedef struct flat_factors {
    const float *planes;
    size_t rows, depth, columns;
    const int32_t *places, *steps;
    const float *panel;
    float *to;
    size_t to_row;
} flat_factors;

/* to[r][c] += the sum over k of planes[places[r] + steps[k]] * panel[k][c]. */
void FAST(flat_multiply)(const flat_factors *factors);

/* to[0 .. count - 1] += x, or the whole vector where count is larger. */
FAST_INLINE void flat_add(fast_vector x, float *to, size_t count)
{
    if (count >= FAST_LANES)
        fast_store(to, fast_load(to) + x);
    else
        fast_store_part(to, fast_load_part(to, count) + x, count);
}

#endif
