/* Group normalisation: the fast tables against the reference. */
#include "support/kernel_compare.h"

#include <string.h>

typedef struct problem {
    size_t batch, channels, area, groups;
    float *x, *gain, *shift, *y, *means, *scales, *dy, *dx, *dgain, *dshift;
    bool plain; /* without gain and shift; then gradients are added */
} problem;

/* The workspace is full of NaN before the call. */
static void run_both(const kernel_table *table, const kernel_run *run, void *task)
{
    problem *p = task;
    const tensor_ref none = TENSOR_NONE;
    perform(table, run, OP_group_normalize,
            &(op_group_normalize){.x = fp32(p->x),
                                  .gain = p->plain ? none : fp32(p->gain),
                                  .shift = p->plain ? none : fp32(p->shift),
                                  .y = fp32(p->y),
                                  .means = fp32(p->means),
                                  .scales = fp32(p->scales),
                                  .batch = p->batch,
                                  .channels = p->channels,
                                  .area = p->area,
                                  .groups = p->groups,
                                  .epsilon = 1e-5});
    op_group_normalize_backward backward = {.x = fp32(p->x),
                                            .gain = p->plain ? none : fp32(p->gain),
                                            .means = fp32(p->means),
                                            .scales = fp32(p->scales),
                                            .dy = fp32(p->dy),
                                            .dx = fp32(p->dx),
                                            .dgain = p->plain ? none : fp32(p->dgain),
                                            .dshift = p->plain ? none : fp32(p->dshift),
                                            .batch = p->batch,
                                            .channels = p->channels,
                                            .area = p->area,
                                            .groups = p->groups,
                                            .accumulate = p->plain};
    size_t bytes = kernel_workspace(OP_group_normalize_backward, &backward);
    void *memory = malloc(bytes ? bytes : 1);
    assert_non_null(memory);
    memset(memory, 0xff, bytes);
    backward.workspace = raw(memory);
    perform(table, run, OP_group_normalize_backward, &backward);
    free(memory);
}

static void group_norms_agree(void **state)
{
    (void)state;
    test_random random = random_open();
    static const size_t SHAPES[][4] = {{0, 4, 3, 2},  {1, 1, 7, 1},   {3, 6, 5, 2},    {2, 12, 1, 3},
                                       {4, 8, 49, 8}, {2, 64, 64, 4}, {5, 32, 100, 1}, {1, 3, 5000, 3}};
    for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++)
        for (int plain = 0; plain < 2; plain++) {
            problem p = {.batch = SHAPES[s][0],
                         .channels = SHAPES[s][1],
                         .area = SHAPES[s][2],
                         .groups = SHAPES[s][3],
                         .plain = plain};
            size_t count = p.batch * p.channels * p.area;
            float **images[] = {&p.x, &p.y, &p.dy, &p.dx}, **vectors[] = {&p.gain, &p.shift, &p.dgain, &p.dshift};
            for (size_t i = 0; i < 4; i++) {
                *images[i] = values_random(&random, count, -2, 2);
                *vectors[i] = values_random(&random, p.channels, -1, 1);
            }
            p.means = values_random(&random, p.batch * p.groups, 0, 1);
            p.scales = values_random(&random, p.batch * p.groups, 0, 1);
            expect_agreement(&(
                (kernel_trial){.call = run_both,
                               .task = &p,
                               .outputs = {{p.y, count}, {p.dx, count}, {p.dgain, p.channels}, {p.dshift, p.channels}},
                               .absolute = 1e-4,
                               .relative = 1e-4}));
            for (size_t i = 0; i < 4; i++) {
                free(*images[i]);
                free(*vectors[i]);
            }
            free(p.means);
            free(p.scales);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(group_norms_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
