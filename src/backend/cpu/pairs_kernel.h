/* The microkernel of pairs: up to 2 x 2 tiles of C, of 16 x 16 sums each.
 *
 *     A: rows of values along k, a_row apart         B: a panel of 32 columns. For every 32 steps of k two tiles, of 16 columns
 *                                                       each. For every two steps a tile has a row of 16 pairs, each the
 *                                                       values of one column at both steps.
 *
 * The version in plain C does what AMX's manual says, so that packing can be tested on every processor. */
#ifndef REMAT_BACKEND_CPU_PAIRS_KERNEL_H
#define REMAT_BACKEND_CPU_PAIRS_KERNEL_H

#include "backend/cpu/fast_math.h"
#include "backend/cpu/pairs.h"

enum { PAIRS_STEP = 32, PAIRS_TILE = 16, PAIRS_PANEL = 2 * PAIRS_TILE, PAIRS_NEXT = PAIRS_STEP / 2 * PAIRS_TILE };

/* Where in a panel of B a pair is: of these two steps and this column. */
FAST_INLINE size_t pairs_place(size_t pair, size_t column)
{
    return pair / PAIRS_TILE * 2 * PAIRS_NEXT + column / PAIRS_TILE * PAIRS_NEXT + pair % PAIRS_TILE * PAIRS_TILE +
           column % PAIRS_TILE;
}

/* Rows of a source that are packed or read next: some lines at a time are prefetched into the second cache. */
typedef struct lines_ahead {
    const char *row;
    size_t stride, rows, bytes, line, at_once;
} lines_ahead;

/* The next line; NULL: there are no more. */
FAST_INLINE const char *next_line(lines_ahead *list)
{
    if (list->rows == 0)
        return NULL;
    const char *line = list->row + list->line;
    list->line += LINE_BYTES;
    if (list->line >= list->bytes) {
        list->line = 0;
        list->row += list->stride;
        list->rows--;
    }
    return line;
}

FAST_INLINE void prefetch_lines(lines_ahead *list, size_t count)
{
    for (size_t i = 0; i < count && list->rows > 0; i++)
        __builtin_prefetch(next_line(list), 0, 2);
}

/* What a call multiplies. C has whole tiles: `down` of them below each other, `across` side by side. */
typedef struct pairs_operands {
    size_t steps; /* along k, of PAIRS_STEP values */
    const uint16_t *a;
    size_t a_row;
    const uint32_t *b;
    float *c;
    size_t ldc;
    bool add; /* to what is in C */
    size_t down, across;
    const char *const *ahead; /* lines to be prefetched meanwhile, `ahead_step` of them with every step */
    size_t ahead_step;
    /* Without tiles: */
    lines_ahead *later; /* NULL, or where at_once more lines come from */
    uint16_t *rounded; /* NULL, or where the sums go instead of to C, rounded after `bias` was added, if there is one */
    size_t rounded_row;
    const float *bias;
} pairs_operands;

/* Products are VDPBF16PS: sums are in registers. */
#if defined(__AVX512BF16__) && !defined(PAIRS_TILES)
enum { HAS_DOTS = 1 };
#else
enum { HAS_DOTS = 0 };
#endif

#ifdef PAIRS_TILES

#include <immintrin.h>

/* Eight tiles of 16 rows of 64 bytes. */
typedef struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_shapes;
static const tile_shapes pairs_tiles = {
    .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

/* Before and after a thread uses tiles. */
FAST_INLINE void pairs_begin(void)
{
    _tile_loadconfig(&pairs_tiles);
}

FAST_INLINE void pairs_end(void)
{
    _tile_release();
}

/* The compiler does not know what the instructions of tiles read and write. */
#define TILES_SEE_MEMORY() __asm__ volatile("" : : : "memory")

/* Sums are tiles 0 to 3, A is 4 and 5, B is 6 and 7. Rows of A are used again at once, and stay in the first cache because loads of B,
 * which is longer, pass by it. */
#define PAIRS_FUNCTION(name, DOWN, ACROSS)                                 \
    FAST_NOINLINE void name(const pairs_operands *of)                      \
    {                                                                      \
        const size_t a_row = 2 * of->a_row, ldc = of->ldc * sizeof(float); \
        const uint16_t *a = of->a, *below = a + PAIRS_TILE * of->a_row;    \
        const uint32_t *b = of->b;                                         \
        float *c = of->c, *c_below = c + PAIRS_TILE * of->ldc;             \
        const char *const *ahead = of->ahead;                              \
        TILES_SEE_MEMORY();                                                \
        if (of->add) {                                                     \
            _tile_loadd(0, c, ldc);                                        \
            if (ACROSS == 2)                                               \
                _tile_loadd(1, c + PAIRS_TILE, ldc);                       \
            if (DOWN == 2)                                                 \
                _tile_loadd(2, c_below, ldc);                              \
            if (DOWN == 2 && ACROSS == 2)                                  \
                _tile_loadd(3, c_below + PAIRS_TILE, ldc);                 \
        } else {                                                           \
            _tile_zero(0);                                                 \
            _tile_zero(1);                                                 \
            _tile_zero(2);                                                 \
            _tile_zero(3);                                                 \
        }                                                                  \
        for (size_t step = 0; step < of->steps; step++) {                  \
            _tile_stream_loadd(6, b, 4 * PAIRS_TILE);                      \
            _tile_loadd(4, a, a_row);                                      \
            _tile_dpbf16ps(0, 4, 6);                                       \
            if (ACROSS == 2) {                                             \
                _tile_stream_loadd(7, b + PAIRS_NEXT, 4 * PAIRS_TILE);     \
                _tile_dpbf16ps(1, 4, 7);                                   \
            }                                                              \
            if (DOWN == 2) {                                               \
                _tile_loadd(5, below, a_row);                              \
                _tile_dpbf16ps(2, 5, 6);                                   \
            }                                                              \
            if (DOWN == 2 && ACROSS == 2)                                  \
                _tile_dpbf16ps(3, 5, 7);                                   \
            for (size_t i = 0; i < of->ahead_step; i++)                    \
                __builtin_prefetch(*ahead++);                              \
            a += PAIRS_STEP;                                               \
            below += PAIRS_STEP;                                           \
            b += PAIRS_STEP / 2 * PAIRS_PANEL;                             \
        }                                                                  \
        _tile_stored(0, c, ldc);                                           \
        if (ACROSS == 2)                                                   \
            _tile_stored(1, c + PAIRS_TILE, ldc);                          \
        if (DOWN == 2)                                                     \
            _tile_stored(2, c_below, ldc);                                 \
        if (DOWN == 2 && ACROSS == 2)                                      \
            _tile_stored(3, c_below + PAIRS_TILE, ldc);                    \
        TILES_SEE_MEMORY();                                                \
    }
PAIRS_FUNCTION(pairs_1x1, 1, 1)
PAIRS_FUNCTION(pairs_1x2, 1, 2)
PAIRS_FUNCTION(pairs_2x1, 2, 1)
PAIRS_FUNCTION(pairs_2x2, 2, 2)
#undef PAIRS_FUNCTION

FAST_INLINE void pairs_multiply(const pairs_operands *of)
{
    static void (*const functions[2][2])(const pairs_operands *) = {{pairs_1x1, pairs_1x2}, {pairs_2x1, pairs_2x2}};
    functions[of->down - 1][of->across - 1](of);
}

#else

/* Without tiles, lines are prefetched before part `i` of a product: so few at a time that none has to wait for another. */
FAST_INLINE void pairs_prefetch(const pairs_operands *of, size_t i, size_t parts)
{
    const size_t count = of->steps * of->ahead_step;
    for (size_t line = count * i / parts; line < count * (i + 1) / parts; line++)
        __builtin_prefetch(of->ahead[line]);
    if (of->later)
        prefetch_lines(of->later, (of->later->at_once + parts - 1) / parts);
}

FAST_INLINE void pairs_begin(void)
{
}

FAST_INLINE void pairs_end(void)
{
}

#if defined(__AVX512BF16__)

enum { PAIRS_ROWS = 8 };

/* Eight rows of sums, `across` vectors wide. */
typedef struct pairs_sums {
    __m512 rows[PAIRS_ROWS][2];
} pairs_sums;

/* The sums of so many pairs along k, of rows of A and of a panel of B; with `add` they begin with C. */
FAST_INLINE void pairs_sum(const uint16_t *a, size_t a_row, const uint32_t *b, size_t pairs, const float *c, size_t ldc,
                           bool add, size_t across, pairs_sums *sums)
{
    for (size_t i = 0; i < PAIRS_ROWS; i++)
        for (size_t v = 0; v < across; v++)
            sums->rows[i][v] = add ? _mm512_loadu_ps(c + i * ldc + v * PAIRS_TILE) : _mm512_setzero_ps();
    for (size_t tile = 0; tile < pairs; tile += PAIRS_TILE, b += PAIRS_NEXT)
        for (size_t pair = tile; pair < pairs && pair < tile + PAIRS_TILE; pair++) {
            __m512i row_of_b[2];
            for (size_t v = 0; v < across; v++)
                row_of_b[v] = _mm512_loadu_si512(b + v * PAIRS_NEXT);
            for (size_t i = 0; i < PAIRS_ROWS; i++) {
                int32_t both;
                memcpy(&both, a + i * a_row, sizeof both);
                const __m512i spread = _mm512_set1_epi32(both);
                for (size_t v = 0; v < across; v++)
                    sums->rows[i][v] = _mm512_dpbf16_ps(sums->rows[i][v], (__m512bh)spread, (__m512bh)row_of_b[v]);
            }
            a += 2;
            b += PAIRS_TILE;
        }
}

FAST_INLINE void pairs_store(const pairs_sums *sums, float *c, size_t ldc, size_t across)
{
    for (size_t i = 0; i < PAIRS_ROWS; i++)
        for (size_t v = 0; v < across; v++)
            _mm512_storeu_ps(c + i * ldc + v * PAIRS_TILE, sums->rows[i][v]);
}

/* Rounds them to bf16. */
FAST_INLINE void pairs_round(const pairs_sums *sums, const float *bias, uint16_t *to, size_t row, size_t across)
{
    for (size_t v = 0; v < across; v++) {
        const __m512 more = bias ? _mm512_loadu_ps(bias + v * PAIRS_TILE) : _mm512_setzero_ps();
        for (size_t i = 0; i < PAIRS_ROWS; i++) {
            const __m512 sum = bias ? _mm512_add_ps(sums->rows[i][v], more) : sums->rows[i][v];
            _mm256_storeu_si256((__m256i *)(void *)(to + i * row + v * PAIRS_TILE), (__m256i)_mm512_cvtneps_pbh(sum));
        }
    }
}

FAST_INLINE void pairs_rows(const pairs_operands *of, size_t row, size_t across)
{
    pairs_sums sums;
    float *c = of->c + row * of->ldc;
    pairs_prefetch(of, row / PAIRS_ROWS, of->down * PAIRS_TILE / PAIRS_ROWS);
    pairs_sum(of->a + row * of->a_row, of->a_row, of->b, of->steps * PAIRS_STEP / 2, c, of->ldc, of->add, across,
              &sums);
    if (of->rounded)
        pairs_round(&sums, of->bias, of->rounded + row * of->rounded_row, of->rounded_row, across);
    else
        pairs_store(&sums, c, of->ldc, across);
}

FAST_NOINLINE void pairs_narrow(const pairs_operands *of)
{
    for (size_t row = 0; row < of->down * PAIRS_TILE; row += PAIRS_ROWS)
        pairs_rows(of, row, 1);
}

FAST_NOINLINE void pairs_wide(const pairs_operands *of)
{
    for (size_t row = 0; row < of->down * PAIRS_TILE; row += PAIRS_ROWS)
        pairs_rows(of, row, 2);
}

FAST_INLINE void pairs_multiply(const pairs_operands *of)
{
    (of->across == 1 ? pairs_narrow : pairs_wide)(of);
}

#else

FAST_INLINE float pairs_half(uint32_t bits)
{
    float value;
    bits <<= 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* One step of a row of C, as TDPBF16PS is described: sums of even and of odd values, which are then added. */
static inline float pairs_step(float sum, const uint16_t *a, const uint32_t *b)
{
    float even = 0, odd = 0;
    for (size_t pair = 0; pair < PAIRS_STEP / 2; pair++) {
        even += pairs_half(a[2 * pair]) * pairs_half(b[pair * PAIRS_TILE] & 0xffff);
        odd += pairs_half(a[2 * pair + 1]) * pairs_half(b[pair * PAIRS_TILE] >> 16);
    }
    return sum + (even + odd);
}

static inline void pairs_multiply(const pairs_operands *of)
{
    pairs_prefetch(of, 0, 1);
    for (size_t row = 0; row < of->down * PAIRS_TILE; row++)
        for (size_t column = 0; column < of->across * PAIRS_TILE; column++) {
            float *c = of->c + row * of->ldc + column, sum = of->add ? *c : 0;
            for (size_t step = 0; step < of->steps; step++)
                sum = pairs_step(sum, of->a + row * of->a_row + step * PAIRS_STEP,
                                 of->b + pairs_place(step * (PAIRS_STEP / 2), column));
            *c = sum;
        }
}

#endif
#endif
#endif
