/* One step of an LSTM and of a GRU, straight from their definitions. */
#include "backend/cpu/reference.h"

#include <tgmath.h>

static real sigmoid(real x)
{
    return 1 / (1 + exp(-x));
}

void REFERENCE(lstm_cell)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_lstm_cell *p = args;
    const size_t size = p->size;
    for (size_t b = 0; b < p->batch; b++) {
        real *gates = (real *)p->gates.at + b * p->gates_row, *cells = (real *)p->cells.at + b * p->state_row;
        real *hidden = (real *)p->hidden.at + b * p->state_row;
        const real *before = p->before.at ? (const real *)p->before.at + b * p->state_row : NULL;
        for (size_t i = 0; i < size; i++) {
            real in = sigmoid(gates[i]), forget = sigmoid(gates[size + i]);
            real value = tanh(gates[2 * size + i]), out = sigmoid(gates[3 * size + i]);
            cells[i] = (before ? forget * before[i] : 0) + in * value;
            hidden[i] = out * tanh(cells[i]);
            gates[i] = in;
            gates[size + i] = forget;
            gates[2 * size + i] = value;
            gates[3 * size + i] = out;
        }
    }
}

void REFERENCE(lstm_cell_backward)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_lstm_cell_backward *p = args;
    const size_t size = p->size;
    for (size_t b = 0; b < p->batch; b++) {
        const real *gates = (const real *)p->gates.at + b * p->gates_row;
        const real *cells = (const real *)p->cells.at + b * p->state_row;
        const real *before = p->before.at ? (const real *)p->before.at + b * p->state_row : NULL;
        const real *dout = (const real *)p->dout.at + b * p->state_row, *dnext = p->dhidden.at;
        real *dcells = (real *)p->dcells.at + b * size, *dgates = (real *)p->dgates.at + b * p->gates_row;
        for (size_t i = 0; i < size; i++) {
            real in = gates[i], forget = gates[size + i], value = gates[2 * size + i], out = gates[3 * size + i];
            real dh = dout[i] + (dnext ? dnext[b * size + i] : 0), high = tanh(cells[i]);
            real dc = (p->is_last ? 0 : dcells[i]) + dh * out * (1 - high * high);
            dgates[i] = dc * value * in * (1 - in);
            dgates[size + i] = before ? dc * before[i] * forget * (1 - forget) : 0;
            dgates[2 * size + i] = dc * in * (1 - value * value);
            dgates[3 * size + i] = dh * high * out * (1 - out);
            dcells[i] = dc * forget;
        }
    }
}

void REFERENCE(gru_cell)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_gru_cell *p = args;
    const size_t size = p->size;
    for (size_t b = 0; b < p->batch; b++) {
        real *gates = (real *)p->gates.at + b * p->gates_row, *hidden = (real *)p->hidden.at + b * p->state_row;
        real *candidate = (real *)p->candidate.at + b * p->state_row;
        const real *product = (const real *)p->product.at + b * 3 * size;
        const real *before = p->before.at ? (const real *)p->before.at + b * p->state_row : NULL;
        for (size_t i = 0; i < size; i++) {
            real reset = sigmoid(gates[i] + product[i]), keep = sigmoid(gates[size + i] + product[size + i]);
            candidate[i] = product[2 * size + i];
            real value = tanh(gates[2 * size + i] + reset * candidate[i]);
            hidden[i] = (1 - keep) * value + (before ? keep * before[i] : 0);
            gates[i] = reset;
            gates[size + i] = keep;
            gates[2 * size + i] = value;
        }
    }
}

void REFERENCE(gru_cell_backward)(const kernel_run *run, const void *args)
{
    (void)run;
    const op_gru_cell_backward *p = args;
    const size_t size = p->size;
    for (size_t b = 0; b < p->batch; b++) {
        const real *gates = (const real *)p->gates.at + b * p->gates_row;
        const real *candidate = (const real *)p->candidate.at + b * p->state_row;
        const real *before = p->before.at ? (const real *)p->before.at + b * p->state_row : NULL;
        const real *dout = (const real *)p->dout.at + b * p->state_row;
        real *dhidden = (real *)p->dhidden.at + b * size, *dgates = (real *)p->dgates.at + b * p->gates_row;
        real *dproduct = (real *)p->dproduct.at + b * p->gates_row;
        for (size_t i = 0; i < size; i++) {
            real reset = gates[i], keep = gates[size + i], value = gates[2 * size + i];
            real dh = dout[i] + (p->is_last ? 0 : dhidden[i]);
            real dvalue = dh * (1 - keep) * (1 - value * value);
            real dreset = dvalue * candidate[i] * reset * (1 - reset);
            real dkeep = dh * ((before ? before[i] : 0) - value) * keep * (1 - keep);
            dgates[i] = dproduct[i] = dreset;
            dgates[size + i] = dproduct[size + i] = dkeep;
            dgates[2 * size + i] = dvalue;
            dproduct[2 * size + i] = dvalue * reset;
            dhidden[i] = dh * keep;
        }
    }
}
