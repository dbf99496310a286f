/* Adds up rows of type VALUE, float or uint16_t for bf16, as ADD_ROWS. fast_sums.c includes this once for each. */

static void ADD_ROWS(size_t rows, size_t distance, size_t columns, const VALUE *x, float *sums)
{
    memset(sums, 0, columns * sizeof *sums);
    size_t row = 0;
    for (; row + 4 <= rows;
         row += 4, x += 4 * distance) { /* four at a time: the sums are loaded and stored less often */
#define STEP(LOAD, STORE, i, FIRST)                                                                            \
    STORE(sums + i, (((LOAD(sums + i) + LOAD(x + i)) + LOAD(x + distance + i)) + LOAD(x + 2 * distance + i)) + \
                        LOAD(x + 3 * distance + i))
        FAST_EACH_ANY(columns, STEP);
#undef STEP
    }
    for (; row < rows; row++, x += distance) {
#define STEP(LOAD, STORE, i, FIRST) STORE(sums + i, LOAD(sums + i) + LOAD(x + i))
        FAST_EACH_ANY(columns, STEP);
#undef STEP
    }
}
