/* Fast kernels against the reference: every instruction set of this processor, with several numbers of threads. */
#ifndef TESTS_KERNEL_COMPARE_H
#define TESTS_KERNEL_COMPARE_H

#include "backend/cpu/kernel.h"
#include "support/cases.h"

/* The fast tables that this processor can run, ended by NULL. */
const kernel_table *const *kernel_tables(void);

/* A run with scratch of exactly the size that the table asks for. */
kernel_run kernel_run_open(const kernel_table *table, int threads);
void kernel_run_close(kernel_run *run);

/* Tensors as kernels take them; NULL is a tensor that is not there. */
static inline tensor_ref fp32(const float *at)
{
    return (tensor_ref){(void *)at, REMAT_FP32};
}
static inline tensor_ref int32(const int32_t *at)
{
    return (tensor_ref){(void *)at, REMAT_INT32};
}
static inline tensor_ref raw(const void *at)
{
    return (tensor_ref){(void *)at, REMAT_UINT8};
}

/* Runs the table's kernel for the operation and the types of its tensors; fails the test where there is none. */
void perform(const kernel_table *table, const kernel_run *run, operation op, const void *args);

/* The types of an operation's tensors, as kernel_find takes them. */
typedef struct types_text {
    char letters[OPERATION_MAX_TENSORS + 1];
} types_text;
types_text types_of(operation op, const void *args);

/* Random numbers from test_seed(), which is printed. */
test_random random_open(void);

/* Values in memory of exactly their size, so that AddressSanitizer sees a step beyond either end. The caller frees. */
float *values_random(test_random *random, size_t count, double low, double high);
float *values_copy(const float *from, size_t count);
float random_value(test_random *random, double low, double high);

/* One operation, or a call that performs several, and where the results go. Outputs and the sum are put back to what they
 * held before every call, so that they may be added to, or be inputs as well. */
typedef struct kernel_trial {
    operation op;
    const void *args;
    void (*call)(const kernel_table *table, const kernel_run *run, void *task); /* instead of the operation, or NULL */
    void *task;
    struct {
        float *values;
        size_t count;
    } outputs[4];
    double *sum;
    double absolute, relative; /* how far a fast result may be from the reference: absolute + relative * |reference| */
} kernel_trial;

/* Makes the call with the reference and every fast table at 1, 2 and 8 threads. Fails the test unless all are close
 * to the reference and have the same bits at every number of threads (the reference at 1 and 2). */
#define expect_agreement(trial) expect_agreement_at(trial, __FILE__, __LINE__)
void expect_agreement_at(const kernel_trial *trial, const char *file, int line);

/* How far `got` is from the exact value, in units of the last place of a float. 0 for equal infinities and NaN. */
double ulps_from(float got, double exact);

/* Fails the test unless the bits are the same. */
#define expect_same_bits(a, b, count) expect_same_bits_at(a, b, count, __FILE__, __LINE__)
void expect_same_bits_at(const float *a, const float *b, size_t count, const char *file, int line);

/* Fails the test unless |got - want| <= tolerance. */
#define expect_near(got, want, tolerance) expect_near_at((double)(got), (double)(want), tolerance, __FILE__, __LINE__)
void expect_near_at(double got, double want, double tolerance, const char *file, int line);

/* Sizes around the lengths of vectors and blocks, ended by 0; the large ones are worth several threads. */
extern const size_t KERNEL_SIZES[];

#endif
