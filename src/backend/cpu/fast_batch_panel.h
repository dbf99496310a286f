/* Batch normalisation where few values of a channel lie side by side; behind a dense layer it is one. An image is then a
 * row with `area` columns for each channel, and vectors run along the row, through many channels. A panel is some columns
 * of all images, whole channels, and one task. Every column has a sum of its own, in double and in the order of the
 * images; the sums of the columns of a channel are added in order too. */
#ifndef REMAT_BACKEND_CPU_FAST_BATCH_PANEL_H
#define REMAT_BACKEND_CPU_FAST_BATCH_PANEL_H

#include "backend/cpu/fast_math.h"

#define PANEL      256 /* columns at most */
#define PANEL_ROWS 64  /* images of one task, where nothing is summed */

/* Channels first .. first + channels - 1 of `batch` rows, which are `distance` values apart. */
typedef struct panel {
    size_t first, channels, columns, batch, area, distance;
} panel;

static inline size_t panel_channels(size_t area)
{
    return PANEL / area;
}

static inline size_t panel_count(size_t channels, size_t area)
{
    return divide_up(channels, panel_channels(area));
}

static inline panel panel_of(size_t first, size_t batch, size_t channels, size_t area)
{
    size_t count = smaller(channels - first, panel_channels(area));
    return (panel){first, count, count * area, batch, area, channels * area};
}

static inline double panel_channel_sum(const panel *p, size_t channel, const double *columns)
{
    double sum = 0;
    for (size_t i = 0; i < p->area; i++)
        sum += columns[channel * p->area + i];
    return sum;
}

/* Sums of all columns. The compilers vectorize these loops. */

static inline void panel_sums(const panel *p, const float *x, double *restrict sums)
{
    size_t b = 0, d = p->distance;
    memset(sums, 0, p->columns * sizeof *sums);
    for (; b + 4 <= p->batch; b += 4, x += 4 * d) /* four at a time: the sums are loaded and stored less often */
        for (size_t i = 0; i < p->columns; i++)
            sums[i] = (((sums[i] + x[i]) + x[d + i]) + x[2 * d + i]) + x[3 * d + i];
    for (; b < p->batch; b++, x += d)
        for (size_t i = 0; i < p->columns; i++)
            sums[i] += x[i];
}

static inline void panel_squares(const panel *p, const float *x, const double *restrict means, double *restrict squares)
{
    memset(squares, 0, p->columns * sizeof *squares);
    for (size_t b = 0; b < p->batch; b++, x += p->distance)
        for (size_t i = 0; i < p->columns; i++) {
            double off = x[i] - means[i];
            squares[i] = fast_fma_double(off, off, squares[i]);
        }
}

/* Of dy, and of dy times x around its mean. */
static inline void panel_slopes(const panel *p, const float *x, const float *dy, const float *restrict means,
                                double *restrict sums, double *restrict alongs)
{
    memset(sums, 0, p->columns * sizeof *sums);
    memset(alongs, 0, p->columns * sizeof *alongs);
    for (size_t b = 0; b < p->batch; b++, x += p->distance, dy += p->distance)
        for (size_t i = 0; i < p->columns; i++) {
            sums[i] += dy[i];
            alongs[i] = fast_fma_double((double)dy[i], (double)(x[i] - means[i]), alongs[i]);
        }
}

#endif
