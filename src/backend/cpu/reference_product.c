#include "backend/cpu/reference.h"

/* One value of the product: a sum for each block of KERNEL_K_BLOCK terms, the sums added in order to `start`. */
static real product_value(const kernel_product *p, size_t i, size_t j, real start)
{
    real value = start;
    for (size_t first = 0; first < p->k; first += KERNEL_K_BLOCK) {
        size_t last = p->k - first < KERNEL_K_BLOCK ? p->k : first + KERNEL_K_BLOCK;
        real sum = 0;
        for (size_t l = first; l < last; l++) {
            real a = p->transpose_a ? p->a[l * p->lda + i] : p->a[i * p->lda + l];
            real b = p->transpose_b ? p->b[j * p->ldb + l] : p->b[l * p->ldb + j];
            sum += a * b;
        }
        value += sum;
    }
    return value;
}

void reference_product(const kernel_run *run, const kernel_product *p)
{
    for (size_t i = 0; i < p->m; i++) {
        real *row = p->c + i * p->ldc;
        for (size_t j = 0; j < p->n; j++) {
            row[j] = product_value(p, i, j, p->accumulate ? row[j] : 0);
            if (p->bias)
                row[j] += p->bias[j];
        }
        const real *at = p->derivative_at ? p->derivative_at + i * p->ldc : NULL;
        if (p->activated && at)
            reference_activate_backward(run, p->activation, p->n, at, at, row, p->activated + i * p->ldc, false);
        else if (p->activated)
            reference_activate(run, p->activation, p->n, row, p->activated + i * p->ldc);
    }
}
