/* The kernels that work on the step block alone, and calls of the user's functions. */
#include "backend/cpu/kernel_rows.h"

#include <math.h>

void kernel_finish_loss(const kernel_run *run, const void *args)
{
    (void)run;
    const op_finish_loss *p = args;
    step_block *block = p->step.at;
    block->loss += block->loss_sum / p->divisor;
    block->loss_sum = 0;
}

void kernel_clip(const kernel_run *run, const void *args)
{
    (void)run;
    const op_clip *p = args;
    step_block *block = p->step.at;
    double scale = p->clip_norm / (sqrt(block->squares) + 1e-6);
    block->scale = scale < 1 ? scale : 1;
}

void kernel_custom(const kernel_run *run, const void *args)
{
    const op_custom *p = args;
    remat_custom_call call = p->call;
    call.threads = run->threads;
    p->function(&call);
}
