/* One step of an LSTM and of a GRU: a thread for each value of a state. */
#include "backend/cuda/cuda_activation.cuh"

#define EACH_STATE(p)                                                \
    const size_t at = (size_t)blockIdx.x * blockDim.x + threadIdx.x; \
    if (at >= (p).batch * (p).size)                                  \
        return;                                                      \
    const size_t size = (p).size, b = at / size, i = at % size;      \
    const size_t gates_at = b * (p).gates_row + i, state = b * (p).state_row + i;

template <class P> static unsigned states_of(const P *p)
{
    return blocks_for(p->batch * p->size, 256);
}

__global__ void step_lstm(op_lstm_cell p)
{
    EACH_STATE(p)
    const float in = sigmoid(get(p.gates, gates_at)), forget = sigmoid(get(p.gates, gates_at + size));
    const float value = tanhf(get(p.gates, gates_at + 2 * size)), out = sigmoid(get(p.gates, gates_at + 3 * size));
    const float cell = (p.before.at ? forget * get(p.before, state) : 0) + in * value;
    put(p.cells, state, cell);
    put(p.hidden, state, out * tanhf(cell));
    put(p.gates, gates_at, in);
    put(p.gates, gates_at + size, forget);
    put(p.gates, gates_at + 2 * size, value);
    put(p.gates, gates_at + 3 * size, out);
}

cudaError_t cuda_lstm_cell(const cuda_run *run, const op_lstm_cell *p)
{
    if (p->batch && p->size)
        step_lstm<<<states_of(p), 256, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

__global__ void derive_lstm(op_lstm_cell_backward p)
{
    EACH_STATE(p)
    const float in = get(p.gates, gates_at), forget = get(p.gates, gates_at + size);
    const float value = get(p.gates, gates_at + 2 * size), out = get(p.gates, gates_at + 3 * size);
    const float dh = get(p.dout, state) + (p.dhidden.at ? get(p.dhidden, at) : 0), high = tanhf(get(p.cells, state));
    const float dc = (p.is_last ? 0 : get(p.dcells, at)) + dh * out * (1 - high * high);
    put(p.dgates, gates_at, dc * value * in * (1 - in));
    put(p.dgates, gates_at + size, p.before.at ? dc * get(p.before, state) * forget * (1 - forget) : 0);
    put(p.dgates, gates_at + 2 * size, dc * in * (1 - value * value));
    put(p.dgates, gates_at + 3 * size, dh * high * out * (1 - out));
    put(p.dcells, at, dc * forget);
}

cudaError_t cuda_lstm_cell_backward(const cuda_run *run, const op_lstm_cell_backward *p)
{
    if (p->batch && p->size)
        derive_lstm<<<states_of(p), 256, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

__global__ void step_gru(op_gru_cell p)
{
    EACH_STATE(p)
    const size_t product = b * 3 * size + i;
    const float reset = sigmoid(get(p.gates, gates_at) + get(p.product, product));
    const float keep = sigmoid(get(p.gates, gates_at + size) + get(p.product, product + size));
    const float candidate = get(p.product, product + 2 * size);
    const float value = tanhf(get(p.gates, gates_at + 2 * size) + reset * candidate);
    const float before = p.before.at ? get(p.before, state) : 0;
    put(p.candidate, state, candidate);
    put(p.hidden, state, (1 - keep) * value + keep * before);
    put(p.gates, gates_at, reset);
    put(p.gates, gates_at + size, keep);
    put(p.gates, gates_at + 2 * size, value);
}

cudaError_t cuda_gru_cell(const cuda_run *run, const op_gru_cell *p)
{
    if (p->batch && p->size)
        step_gru<<<states_of(p), 256, 0, run->stream>>>(*p);
    return cudaGetLastError();
}

__global__ void derive_gru(op_gru_cell_backward p)
{
    EACH_STATE(p)
    const float reset = get(p.gates, gates_at), keep = get(p.gates, gates_at + size);
    const float value = get(p.gates, gates_at + 2 * size), before = p.before.at ? get(p.before, state) : 0;
    const float dh = get(p.dout, state) + (p.is_last ? 0 : get(p.dhidden, at));
    const float dvalue = dh * (1 - keep) * (1 - value * value);
    const float dreset = dvalue * get(p.candidate, state) * reset * (1 - reset);
    const float dkeep = dh * (before - value) * keep * (1 - keep);
    put(p.dgates, gates_at, dreset);
    put(p.dgates, gates_at + size, dkeep);
    put(p.dgates, gates_at + 2 * size, dvalue);
    put(p.dproduct, gates_at, dreset);
    put(p.dproduct, gates_at + size, dkeep);
    put(p.dproduct, gates_at + 2 * size, dvalue * reset);
    put(p.dhidden, at, dh * keep);
}

cudaError_t cuda_gru_cell_backward(const cuda_run *run, const op_gru_cell_backward *p)
{
    if (p->batch && p->size)
        derive_gru<<<states_of(p), 256, 0, run->stream>>>(*p);
    return cudaGetLastError();
}
