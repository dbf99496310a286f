/* The adjoint of a heat equation in two dimensions over 1,000 time steps.
 *
 * How well does a plate conduct heat, at each point, if all we have is its temperature at the end? The misfit is half
 * the sum of squares of what differs; its gradient with respect to the conductivity needs the temperature at each
 * step, in reverse order. Four tapes provide them: one keeps all, one keeps 30 and recomputes the others, one stores
 * them in 16 bits, and one stores them on disk. Taylor's test checks each gradient: its error must fall with the
 * square of the distance.
 *     ./heat_adjoint [directory [steps]] */
#include <remat/remat.h>
#include <remat/tape.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 64, POINTS = SIDE * SIDE };

typedef struct plate {
    float conductivity[POINTS], gradient[POINTS], measured[POINTS];
    uint32_t steps;
} plate;

/* Each pair of neighbours; nothing flows out at the edges. */
#define FOR_NEIGHBOURS(a, b)                            \
    for (int direction = 0; direction < 2; direction++) \
        for (int a = 0, b; a < POINTS; a++)             \
            if (b = direction ? a + SIDE : a + 1, direction ? b < POINTS : b % SIDE != 0)

/* u' = u + dt div(k grad u): heat flows between neighbours. The same map takes gradients back: it is symmetric. */
static void flow(const float *k, const float *u, float *next)
{
    memcpy(next, u, POINTS * sizeof *u);
    FOR_NEIGHBOURS(a, b)
    {
        float heat = 0.1f * 0.5f * (k[a] + k[b]) * (u[b] - u[a]);
        next[a] += heat;
        next[b] -= heat;
    }
}

static int forward(void *user, const remat_tape_call *call)
{
    flow(((plate *)user)->conductivity, call->input, call->output);
    return 0;
}

static int loss(void *user, const remat_tape_call *call)
{
    const plate *p = user;
    for (int i = 0; i < POINTS; i++)
        ((float *)call->input_gradient)[i] = ((const float *)call->input)[i] - p->measured[i];
    return 0;
}

static int backward(void *user, const remat_tape_call *call)
{
    plate *p = user;
    const float *u = call->input, *from = call->output_gradient;
    flow(p->conductivity, from, call->input_gradient);
    FOR_NEIGHBOURS(a, b)
    {
        float change = 0.1f * 0.5f * (u[b] - u[a]) * (from[a] - from[b]);
        p->gradient[a] += change;
        p->gradient[b] += change;
    }
    return 0;
}

/* The misfit with plain loops: no tape. */
static double misfit(const plate *p, const float *k, const float *start, float *end)
{
    float here[POINTS], next[POINTS];
    double sum = 0;
    memcpy(here, start, sizeof here);
    for (uint32_t i = 0; i < p->steps; i++, memcpy(here, next, sizeof here))
        flow(k, here, next);
    for (int i = 0; i < POINTS; i++)
        sum += 0.5 * ((double)here[i] - (double)p->measured[i]) * ((double)here[i] - (double)p->measured[i]);
    if (end)
        memcpy(end, here, sizeof here);
    return sum;
}

/* The least slope of what the gradient fails to predict, while the distance is halved again and again. */
static double taylor(const plate *p, const float *start)
{
    float moved[POINTS];
    double slope = 9, before = 0, base = misfit(p, p->conductivity, start, NULL);
    for (double distance = 0.02; distance > 0.002; distance /= 2) {
        double predicted = 0;
        for (int i = 0; i < POINTS; i++) {
            double direction = sin(0.37 * i) + 0.5;
            moved[i] = p->conductivity[i] + (float)(distance * direction);
            predicted += (double)(moved[i] - p->conductivity[i]) * (double)p->gradient[i];
        }
        double missed = fabs(misfit(p, moved, start, NULL) - base - predicted);
        slope = before > 0 ? fmin(slope, log2(before / missed)) : slope;
        before = missed;
    }
    return slope;
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name, *strategy;
        remat_tape_store store;
    } ways[] = {{"everything kept", "none", REMAT_TAPE_MEMORY},
                {"30 states held", "revolve:30", REMAT_TAPE_MEMORY},
                {"kept in 16 bits", "none", REMAT_TAPE_FP16},
                {"kept on disk", "none", REMAT_TAPE_DISK}};
    static plate p;
    static float start[POINTS];
    p.steps = count > 2 ? (uint32_t)atoi(arguments[2]) : 1000;
    for (int i = 0; i < POINTS; i++) {
        start[i] = (float)(exp(-0.01 * (pow(i % SIDE - 20, 2) + pow(i / SIDE - 30, 2))));
        p.conductivity[i] = 1.0f + 0.5f * (float)sin(0.1 * (i % SIDE)); /* the truth, for the measurement */
    }
    misfit(&p, p.conductivity, start, p.measured);
    for (int i = 0; i < POINTS; i++)
        p.conductivity[i] = 1.0f; /* a first guess */
    remat_context *ctx;
    remat_profile *profile;
    remat_status status = remat_context_create(NULL, &ctx);
    if (status != REMAT_OK || (status = remat_profile_create(ctx, &profile)) != REMAT_OK)
        return 1;
    status = remat_profile_set_input_bytes(profile, sizeof start);
    for (uint32_t i = 0; status == REMAT_OK && i < p.steps; i++)
        status = remat_profile_add(profile, REMAT_OTHER, sizeof start, 1);
    bool good = true;
    for (int i = 0; status == REMAT_OK && i < 4; i++) {
        remat_tape_callbacks callbacks = {forward, backward, loss, &p};
        remat_tape_options options;
        remat_tape *tape;
        remat_tape_options_init(&options);
        options.strategy = ways[i].strategy;
        options.store = ways[i].store;
        options.directory = count > 1 ? arguments[1] : ".";
        memset(p.gradient, 0, sizeof p.gradient);
        if ((status = remat_tape_create(ctx, profile, &callbacks, &options, &tape)) == REMAT_OK)
            status = remat_tape_run(tape, start, NULL);
        double slope = status == REMAT_OK ? taylor(&p, start) : 0;
        good = good && slope >= 1.95;
        if (status == REMAT_OK)
            printf("%-16s %10llu bytes, slope %.4f\n", ways[i].name, (unsigned long long)remat_tape_arena_bytes(tape),
                   slope);
        remat_tape_destroy(tape);
    }
    if (status != REMAT_OK)
        fprintf(stderr, "heat_adjoint: %s\n", remat_context_message(ctx));
    remat_profile_destroy(profile);
    remat_context_destroy(ctx);
    return good && status == REMAT_OK ? 0 : 1;
}
