#include <math.h>

#include "support/kernel_compare.h"

typedef struct optimizer_task {
    size_t count;
    const kernel_sgd *sgd;
    const kernel_adam *adam;
    const float *gradient;
    float *weight, *first, *second;
} optimizer_task;

static void call_optimizer(const kernel_table *table, const kernel_run *run, void *task)
{
    const optimizer_task *t = task;
    if (t->sgd)
        table->sgd(run, t->sgd, t->count, t->gradient, t->weight, t->first);
    else
        table->adam(run, t->adam, t->count, t->gradient, t->weight, t->first, t->second);
}

static void fast_agrees_with_the_reference(void **state)
{
    (void)state;
    test_random random = random_open();
    static const kernel_sgd SGD[] = {
        {0.1f, 0, 0, 1, false}, {0.1f, 0.9f, 0.01f, 0.5f, false}, {0.1f, 0.9f, 0.01f, 1, true}};
    static const kernel_adam ADAM[] = {{1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f, 1, false, 0.19f, 0.002f},
                                       {1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.3f, true, 0.1f, 0.05f}};
    for (const size_t *size = KERNEL_SIZES; *size; size++) {
        float *gradient = values_random(&random, *size, -1, 1), *weight = values_random(&random, *size, -1, 1);
        float *first = values_random(&random, *size, -1, 1), *second = values_random(&random, *size, 0, 1);
        for (int i = 0; i < 3; i++) {
            float *velocity = SGD[i].momentum > 0 ? first : NULL;
            optimizer_task task = {*size, &SGD[i], NULL, gradient, weight, velocity, NULL};
            expect_agreement(&((kernel_trial){.call = call_optimizer,
                                              .task = &task,
                                              .outputs = {{weight, *size}, {velocity, *size}},
                                              .absolute = 5e-7}));
        }
        for (int i = 0; i < 2; i++) {
            optimizer_task task = {*size, NULL, &ADAM[i], gradient, weight, first, second};
            expect_agreement(&((kernel_trial){.call = call_optimizer,
                                              .task = &task,
                                              .outputs = {{weight, *size}, {first, *size}, {second, *size}},
                                              .absolute = 5e-7,
                                              .relative = 1e-6}));
        }
        free(gradient);
        free(weight);
        free(first);
        free(second);
    }
}

/* One weight in double, as the papers and PyTorch have it. */
typedef struct slow_state {
    double weight, first, second;
} slow_state;

static void slow_sgd(const kernel_sgd *o, double gradient, slow_state *s)
{
    double g = gradient * (double)o->scale + (double)o->decay * s->weight;
    s->first = (double)o->momentum * s->first + g;
    s->weight -= (double)o->rate * (o->nesterov ? g + (double)o->momentum * s->first : s->first);
}

static void slow_adam(const kernel_adam *o, double gradient, int step, slow_state *s)
{
    double beta1 = (double)o->beta1, beta2 = (double)o->beta2, rate = (double)o->rate, decay = (double)o->decay;
    double g = gradient * (double)o->scale;
    if (o->decoupled)
        s->weight *= 1 - rate * decay;
    else
        g += decay * s->weight;
    s->first = beta1 * s->first + (1 - beta1) * g;
    s->second = beta2 * s->second + (1 - beta2) * g * g;
    double mean = s->first / (1 - pow(beta1, step)), square = s->second / (1 - pow(beta2, step));
    s->weight -= rate * mean / (sqrt(square) + (double)o->epsilon);
}

static void steps_follow_the_formulas(void **state)
{
    (void)state;
    enum { COUNT = 37, STEPS = 20 };
    test_random random = random_open();
    const kernel_table *tables[] = {kernels_reference(), kernels_fast()};
    for (int fast = 0; fast < 2; fast++)
        for (int variant = 0; variant < 4; variant++) { /* sgd plain and nesterov, adam coupled and decoupled */
            bool with_sgd = variant < 2;
            kernel_sgd sgd = {0.05f, 0.9f, 0.01f, 0.7f, variant == 1};
            kernel_adam adam = {0.01f, 0.9f, 0.999f, 1e-8f, 0.1f, 0.7f, variant == 3, 0, 0};
            float weight[COUNT], first[COUNT] = {0}, second[COUNT] = {0}, gradient[COUNT];
            slow_state slow[COUNT];
            for (int i = 0; i < COUNT; i++) {
                weight[i] = random_value(&random, -1, 1);
                slow[i] = (slow_state){(double)weight[i], 0, 0};
            }
            kernel_run run = {2, NULL};
            for (int step = 1; step <= STEPS; step++) {
                adam.correction1 = (float)(1 - pow((double)adam.beta1, step));
                adam.correction2 = (float)(1 - pow((double)adam.beta2, step));
                for (int i = 0; i < COUNT; i++) {
                    gradient[i] = random_value(&random, -1, 1);
                    if (with_sgd)
                        slow_sgd(&sgd, (double)gradient[i], &slow[i]);
                    else
                        slow_adam(&adam, (double)gradient[i], step, &slow[i]);
                }
                if (with_sgd)
                    tables[fast]->sgd(&run, &sgd, COUNT, gradient, weight, first);
                else
                    tables[fast]->adam(&run, &adam, COUNT, gradient, weight, first, second);
            }
            for (int i = 0; i < COUNT; i++)
                expect_near(weight[i], slow[i].weight, 2e-5);
        }
}

/* Adam's first step has the size of the rate, whatever the gradient's. */
static void the_first_step_of_adam_is_the_rate(void **state)
{
    (void)state;
    const kernel_table *tables[] = {kernels_reference(), kernels_fast()};
    for (int fast = 0; fast < 2; fast++) {
        float gradient[3] = {1e-3f, -1, 1000}, weight[3] = {0}, first[3] = {0}, second[3] = {0};
        float beta2 = 0.999f;
        kernel_adam adam = {0.1f, 0.9f, beta2, 1e-8f, 0, 1, false, 1 - 0.9f, 1 - beta2};
        kernel_run run = {1, NULL};
        tables[fast]->adam(&run, &adam, 3, gradient, weight, first, second);
        for (int i = 0; i < 3; i++)
            expect_near(weight[i], gradient[i] > 0 ? -0.1 : 0.1, 2e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_agrees_with_the_reference),
        cmocka_unit_test(steps_follow_the_formulas),
        cmocka_unit_test(the_first_step_of_adam_is_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
