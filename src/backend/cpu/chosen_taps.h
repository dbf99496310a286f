/* The choices of max pooling in a few bits each: see op_pool_max. */
#ifndef REMAT_BACKEND_CPU_CHOSEN_TAPS_H
#define REMAT_BACKEND_CPU_CHOSEN_TAPS_H

#include "backend/operation.h"

/* Where the window of output `column` in a row of outputs begins; before the image if it is padded. */
static inline ptrdiff_t chosen_start(const operation_window *w, size_t row, size_t column)
{
    const ptrdiff_t y = (ptrdiff_t)(row * w->stride_h) - (ptrdiff_t)w->pad_h;
    return y * (ptrdiff_t)w->in_w + (ptrdiff_t)(column * w->stride_w) - (ptrdiff_t)w->pad_w;
}

/* Packs a row of outputs from their positions in the image. */
static inline void chosen_pack(const operation_window *w, size_t row, const int32_t *positions, uint8_t *to)
{
    const unsigned bits = operation_chosen_bits(w);
    const size_t each = 8 / bits;
    for (size_t first = 0; first < w->out_w; first += each) {
        unsigned byte = 0;
        for (size_t i = 0; i < each && first + i < w->out_w; i++) {
            size_t place = (size_t)(positions[first + i] - chosen_start(w, row, first + i)), tap = 0;
            for (; place >= w->in_w; place -= w->in_w) /* a row of the window below */
                tap += w->kernel_w;
            byte |= (unsigned)(tap + place) << i * bits;
        }
        *to++ = (uint8_t)byte;
    }
}

/* What each tap adds to the start of a window. */
typedef ptrdiff_t chosen_places[256];

static inline void chosen_find_places(const operation_window *w, chosen_places places)
{
    for (size_t tap = 0; tap < 256; tap++)
        places[tap] = (ptrdiff_t)(tap / w->kernel_w * w->in_w + tap % w->kernel_w);
}

static inline ptrdiff_t chosen_position(const operation_window *w, const chosen_places places, const uint8_t *packed,
                                        size_t row, size_t column)
{
    const unsigned bits = operation_chosen_bits(w);
    const size_t at = column * bits;
    return chosen_start(w, row, column) + places[packed[at / 8] >> at % 8 & ((1u << bits) - 1)];
}

#endif
