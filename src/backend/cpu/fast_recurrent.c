/* One step of an LSTM and of a GRU; reference_recurrent.c has the formulas. A pass of the loops is a row of the batch. */
#include "backend/cpu/fast_math.h"

FAST_INLINE fast_vector ones(void)
{
    return fast_repeat(1.0f);
}

static void lstm_rows(const void *args, parallel_range range)
{
    const op_lstm_cell *p = args;
    const size_t size = p->size;
    for (size_t b = range.begin; b < range.end; b++) {
        float *gates = (float *)p->gates.at + b * p->gates_row, *cells = (float *)p->cells.at + b * p->state_row;
        float *hidden = (float *)p->hidden.at + b * p->state_row;
        const float *before = p->before.at ? (const float *)p->before.at + b * p->state_row : NULL;
#define STEP(LOAD, STORE, i, FIRST)                                                                    \
    do {                                                                                               \
        fast_vector in = fast_sigmoid(LOAD(gates + i)), forget = fast_sigmoid(LOAD(gates + size + i)); \
        fast_vector value = fast_tanh(LOAD(gates + 2 * size + i));                                     \
        fast_vector out = fast_sigmoid(LOAD(gates + 3 * size + i));                                    \
        fast_vector cell = before ? fast_fma(forget, LOAD(before + i), in * value) : in * value;       \
        STORE(cells + i, cell);                                                                        \
        STORE(hidden + i, out * fast_tanh(cell));                                                      \
        STORE(gates + i, in);                                                                          \
        STORE(gates + size + i, forget);                                                               \
        STORE(gates + 2 * size + i, value);                                                            \
        STORE(gates + 3 * size + i, out);                                                              \
    } while (0)
        FAST_EACH(size, STEP);
#undef STEP
    }
}

void FAST(lstm_cell)(const kernel_run *run, const void *args)
{
    const op_lstm_cell *p = args;
    parallel_static(fast_threads(run, 8 * p->batch * p->size), p->batch, lstm_rows, p);
}

static void lstm_rows_backward(const void *args, parallel_range range)
{
    const op_lstm_cell_backward *p = args;
    const size_t size = p->size;
    for (size_t b = range.begin; b < range.end; b++) {
        const float *gates = (const float *)p->gates.at + b * p->gates_row;
        const float *cells = (const float *)p->cells.at + b * p->state_row;
        const float *before = p->before.at ? (const float *)p->before.at + b * p->state_row : NULL;
        const float *dout = (const float *)p->dout.at + b * p->state_row;
        const float *dnext = p->dhidden.at ? (const float *)p->dhidden.at + b * size : NULL;
        float *dcells = (float *)p->dcells.at + b * size, *dgates = (float *)p->dgates.at + b * p->gates_row;
        const bool is_last = p->is_last;
#define STEP(LOAD, STORE, i, FIRST)                                                                               \
    do {                                                                                                          \
        fast_vector in = LOAD(gates + i), forget = LOAD(gates + size + i), value = LOAD(gates + 2 * size + i);    \
        fast_vector out = LOAD(gates + 3 * size + i), high = fast_tanh(LOAD(cells + i));                          \
        fast_vector dh = dnext ? LOAD(dout + i) + LOAD(dnext + i) : LOAD(dout + i);                               \
        fast_vector dc = dh * out * (ones() - high * high);                                                       \
        if (!is_last)                                                                                             \
            dc += LOAD(dcells + i);                                                                               \
        STORE(dgates + i, dc * value * in * (ones() - in));                                                       \
        STORE(dgates + size + i, before ? dc * LOAD(before + i) * forget * (ones() - forget) : (fast_vector){0}); \
        STORE(dgates + 2 * size + i, dc * in * (ones() - value * value));                                         \
        STORE(dgates + 3 * size + i, dh * high * out * (ones() - out));                                           \
        STORE(dcells + i, dc * forget);                                                                           \
    } while (0)
        FAST_EACH(size, STEP);
#undef STEP
    }
}

void FAST(lstm_cell_backward)(const kernel_run *run, const void *args)
{
    const op_lstm_cell_backward *p = args;
    parallel_static(fast_threads(run, 8 * p->batch * p->size), p->batch, lstm_rows_backward, p);
}

static void gru_rows(const void *args, parallel_range range)
{
    const op_gru_cell *p = args;
    const size_t size = p->size;
    for (size_t b = range.begin; b < range.end; b++) {
        float *gates = (float *)p->gates.at + b * p->gates_row, *hidden = (float *)p->hidden.at + b * p->state_row;
        float *candidate = (float *)p->candidate.at + b * p->state_row;
        const float *product = (const float *)p->product.at + b * 3 * size;
        const float *before = p->before.at ? (const float *)p->before.at + b * p->state_row : NULL;
#define STEP(LOAD, STORE, i, FIRST)                                                         \
    do {                                                                                    \
        fast_vector reset = fast_sigmoid(LOAD(gates + i) + LOAD(product + i));              \
        fast_vector keep = fast_sigmoid(LOAD(gates + size + i) + LOAD(product + size + i)); \
        fast_vector from = LOAD(product + 2 * size + i);                                    \
        fast_vector value = fast_tanh(fast_fma(reset, from, LOAD(gates + 2 * size + i)));   \
        fast_vector new = (ones() - keep) * value;                                          \
        STORE(candidate + i, from);                                                         \
        STORE(hidden + i, before ? fast_fma(keep, LOAD(before + i), new) : new);            \
        STORE(gates + i, reset);                                                            \
        STORE(gates + size + i, keep);                                                      \
        STORE(gates + 2 * size + i, value);                                                 \
    } while (0)
        FAST_EACH(size, STEP);
#undef STEP
    }
}

void FAST(gru_cell)(const kernel_run *run, const void *args)
{
    const op_gru_cell *p = args;
    parallel_static(fast_threads(run, 8 * p->batch * p->size), p->batch, gru_rows, p);
}

static void gru_rows_backward(const void *args, parallel_range range)
{
    const op_gru_cell_backward *p = args;
    const size_t size = p->size;
    for (size_t b = range.begin; b < range.end; b++) {
        const float *gates = (const float *)p->gates.at + b * p->gates_row;
        const float *candidate = (const float *)p->candidate.at + b * p->state_row;
        const float *before = p->before.at ? (const float *)p->before.at + b * p->state_row : NULL;
        const float *dout = (const float *)p->dout.at + b * p->state_row;
        float *dhidden = (float *)p->dhidden.at + b * size, *dgates = (float *)p->dgates.at + b * p->gates_row;
        float *dproduct = (float *)p->dproduct.at + b * p->gates_row;
        const bool is_last = p->is_last;
#define STEP(LOAD, STORE, i, FIRST)                                                                             \
    do {                                                                                                        \
        fast_vector reset = LOAD(gates + i), keep = LOAD(gates + size + i), value = LOAD(gates + 2 * size + i); \
        fast_vector dh = is_last ? LOAD(dout + i) : LOAD(dout + i) + LOAD(dhidden + i);                         \
        fast_vector dvalue = dh * (ones() - keep) * (ones() - value * value);                                   \
        fast_vector dreset = dvalue * LOAD(candidate + i) * reset * (ones() - reset);                           \
        fast_vector change = before ? LOAD(before + i) - value : -value;                                        \
        fast_vector dkeep = dh * change * keep * (ones() - keep);                                               \
        STORE(dgates + i, dreset);                                                                              \
        STORE(dproduct + i, dreset);                                                                            \
        STORE(dgates + size + i, dkeep);                                                                        \
        STORE(dproduct + size + i, dkeep);                                                                      \
        STORE(dgates + 2 * size + i, dvalue);                                                                   \
        STORE(dproduct + 2 * size + i, dvalue * reset);                                                         \
        STORE(dhidden + i, dh * keep);                                                                          \
    } while (0)
        FAST_EACH(size, STEP);
#undef STEP
    }
}

void FAST(gru_cell_backward)(const kernel_run *run, const void *args)
{
    const op_gru_cell_backward *p = args;
    parallel_static(fast_threads(run, 8 * p->batch * p->size), p->batch, gru_rows_backward, p);
}
