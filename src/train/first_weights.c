/* The weights a training starts with. Value i of a parameter takes 32-bit number i of the parameter's own random stream,
 * so that any cut over threads gives the same bits.
 *
 * A normal number is the quantile of a uniform one. The quantile function is a table with straight lines between its
 * entries, which is a hundred times faster than logarithms and cosines; the outermost cells, where it bends to
 * infinity, are computed. */
#include "train/first_weights.h"

#include <math.h>

#include "backend/cpu/kernel.h"
#include "base/alloc.h"
#include "base/min_max.h"
#include "base/weight_blocks.h"
#include "train/host_view.h"

/* Streams for first weights stay apart from those of layers, which are numbered from 0. */
#define PARAMETER_STREAM 0x40000000u

enum { CELL_BITS = 12, CELLS = 1 << CELL_BITS };

/* The x with Phi(x) = p: Newton's method from the middle outwards. Phi by erfc keeps its digits in the tail. */
static double quantile(double p)
{
    if (p > 0.5)
        return -quantile(1 - p);
    double x = 0;
    for (int i = 0; i < 60; i++) {
        double value = 0.5 * erfc(-x * M_SQRT1_2), slope = exp(-0.5 * x * x) * (0.5 * M_2_SQRTPI * M_SQRT1_2);
        double move = (value - p) / slope;
        if (move > 0.5)
            move = 0.5; /* far out the first steps would overshoot */
        x -= move;
        if (fabs(move) < 1e-14)
            break;
    }
    return x;
}

typedef struct normal_table {
    float at[CELLS + 1];
} normal_table;

static void make_table(normal_table *table)
{
    for (int i = 1; i < CELLS; i++)
        table->at[i] = (float)quantile((double)i / CELLS);
    table->at[0] = table->at[1]; /* never used: computed instead */
    table->at[CELLS] = table->at[CELLS - 1];
}

static float normal(const normal_table *table, uint32_t bits)
{
    uint32_t cell = bits >> (32 - CELL_BITS);
    if (cell == 0 || cell == CELLS - 1)
        return (float)quantile(((double)bits + 0.5) * 0x1p-32);
    float share = (float)(bits & ((1u << (32 - CELL_BITS)) - 1)) * 0x1p-20f;
    return table->at[cell] + (table->at[cell + 1] - table->at[cell]) * share;
}

enum { CHUNK = FIRST_WEIGHTS_BLOCK }; /* numbers drawn at a time; a multiple of 64 */

typedef struct fill_loop {
    const network_parameter *parameter;
    const normal_table *table;
    const remat_random *stream;
    uint64_t first, count; /* of the parameter's values */
    void *values;
} fill_loop;

static void fill_chunks(const void *args, parallel_range range)
{
    const fill_loop *loop = args;
    const float scale = (float)loop->parameter->about.fill_scale;
    const bool is_normal = loop->parameter->about.fill == LAYER_NORMAL;
    const kernel_table *kernels = kernels_fast();
    const kernel_run alone = {1, NULL};
    for (size_t chunk = range.begin; chunk < range.end; chunk++) {
        uint32_t bits[CHUNK];
        uint64_t from = (uint64_t)chunk * CHUNK;
        size_t some = (size_t)remat_min(loop->count - from, CHUNK);
        const remat_dtype dtype = loop->parameter->about.dtype;
        float made[CHUNK], *values = dtype == REMAT_FP32 ? (float *)loop->values + from : made;
        kernels->draw(&alone, loop->stream, loop->first + from, some, bits);
        for (size_t i = 0; i < some; i++)
            values[i] =
                is_normal ? scale * normal(loop->table, bits[i]) : scale * ((float)(bits[i] >> 8) * 0x1p-23f - 1.0f);
        if (dtype != REMAT_FP32)
            weight_blocks_pack(dtype, made, (char *)loop->values + dtype_bytes(dtype, from), some);
    }
}

static void fill_parameter(const network_parameter *parameter, uint32_t number, const normal_table *table,
                           uint64_t seed, unsigned threads, weight_place place)
{
    float *values = (float *)(void *)place.at;
    if (parameter->about.dtype != REMAT_FP32 &&
        (parameter->about.fill == LAYER_ZEROS || parameter->about.fill == LAYER_ONES)) {
        float some[WEIGHT_BLOCK];
        for (size_t i = 0; i < WEIGHT_BLOCK; i++)
            some[i] = parameter->about.fill == LAYER_ONES;
        for (uint64_t i = 0; i < place.values; i += WEIGHT_BLOCK)
            weight_blocks_pack(parameter->about.dtype, some, place.at + dtype_bytes(parameter->about.dtype, i),
                               (size_t)remat_min(place.values - i, WEIGHT_BLOCK));
        return;
    }
    if (parameter->about.fill == LAYER_ZEROS || parameter->about.fill == LAYER_ONES) {
        for (uint64_t i = 0; i < place.values; i++)
            values[i] = parameter->about.fill == LAYER_ONES;
        return;
    }
    remat_random stream = remat_random_stream(seed, PARAMETER_STREAM + number, 0);
    const fill_loop loop = {parameter, table, &stream, place.first, place.values, place.at};
    size_t chunks = (size_t)(place.values / CHUNK + (place.values % CHUNK > 0));
    parallel_dynamic(chunks > 16 ? (int)threads : 1, chunks, 64, fill_chunks, &loop);
}

remat_status parameters_fill(const remat_network *network, backend_queue *queue, uint64_t seed, weight_place_fn *place,
                             const void *user)
{
    normal_table *table = remat_alloc(network->context, 1, sizeof *table);
    remat_status status = table ? REMAT_OK : REMAT_NO_MEMORY;
    if (table)
        make_table(table);
    for (uint32_t p = 0; p < network->parameter_count && status == REMAT_OK; p++) {
        const network_parameter *parameter = &network->parameters[p];
        weight_place to = place(user, p);
        host_view view;
        if (to.values == 0)
            continue;
        status = host_view_open(queue, to.at, dtype_bytes(parameter->about.dtype, to.values), false, &view);
        if (status != REMAT_OK)
            break;
        to.at = view.host;
        fill_parameter(parameter, p, table, seed, queue->owner->threads, to);
        status = host_view_close(&view, true);
    }
    remat_release(network->context, table, 1, sizeof *table);
    return status;
}
