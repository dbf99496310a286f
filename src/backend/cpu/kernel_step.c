/* The kernels that work on the step block alone, and calls of the user's functions. */
#include "backend/cpu/kernel_rows.h"

#include <math.h>
#include <string.h>

void kernel_finish_loss(const kernel_run *run, const void *args)
{
    (void)run;
    const op_finish_loss *p = args;
    step_block *block = p->step.at;
    block->loss += block->loss_sum / (p->by_labels ? p->divisor * step_labels(block) : p->divisor);
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

static void copy_halves(const void *args, parallel_range range)
{
    const op_copy *p = args;
    memcpy((uint16_t *)p->y.at + range.begin, (const uint16_t *)p->x.at + range.begin,
           (range.end - range.begin) * sizeof(uint16_t));
}

void kernel_copy_halves(const kernel_run *run, const void *args)
{
    const op_copy *p = args;
    parallel_static(p->count < 65536 ? 1 : run->threads, p->count, copy_halves, p);
}

void kernel_check_halves(const kernel_run *run, const void *args)
{
    (void)run; /* only a step that diverged runs it */
    const op_check_finite *p = args;
    const uint16_t *x = p->x.at;
    step_block *block = p->step.at;
    bool finite = true;
    for (size_t i = 0; i < p->count; i++)
        finite &= (x[i] & 0x7f80) != 0x7f80;
    if (!finite && block->broken == 0)
        block->broken = 1 + p->number;
}

void kernel_custom(const kernel_run *run, const void *args)
{
    const op_custom *p = args;
    remat_custom_call call = p->call;
    call.threads = run->threads;
    p->function(&call);
}
