#include "plain_annealing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "measure.h"

/* Of this thread: other programs on the machine do not count. */
static double cpu_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

enum { KEEP, ONCE, EACH };

typedef struct plain {
    const remat_graph *graph;
    graph_walker walker;
    graph_sequence sequence;
    uint32_t *maker; /* by tensor: the action that may run again to make it; GRAPH_NONE */
    uint8_t *choice; /* by tensor */
    uint32_t *made;  /* by tensor: 1 + the position at which it was made last; 0: not there */
    uint32_t turn;   /* behind the last action that may run again */
    uint64_t peak, cost, over;
} plain;

static void begin(plain *p, const remat_graph *graph)
{
    *p = (plain){.graph = graph};
    measure_must(graph->context, graph_walker_create(graph, GRAPH_EXACT, &p->walker));
    p->maker = malloc((graph->tensor_count + 1) * sizeof *p->maker);
    p->choice = calloc(graph->tensor_count + 1, 1);
    p->made = calloc(graph->tensor_count + 1, sizeof *p->made);
    memset(p->maker, 0xff, graph->tensor_count * sizeof *p->maker);
    for (uint32_t i = 0; i < graph->action_count; i++) {
        const graph_action *action = &graph->actions[i];
        for (uint32_t k = 0; !action->once && k < action->write_count; k++)
            p->maker[graph_writes(graph, action)[k]] = i;
        p->turn = action->once ? p->turn : i + 1;
    }
}

static void end(plain *p)
{
    graph_walker_release(&p->walker);
    graph_sequence_release(p->graph->context, &p->sequence);
    free(p->maker);
    free(p->choice);
    free(p->made);
}

static void run(plain *p, uint32_t action, uint32_t position);

static void need(plain *p, uint32_t tensor, uint32_t position)
{
    if (p->maker[tensor] == GRAPH_NONE || p->choice[tensor] == KEEP || position < p->turn)
        return;
    if (p->choice[tensor] == ONCE ? p->made[tensor] > p->turn : p->made[tensor] == position + 1)
        return;
    run(p, p->maker[tensor], position);
}

static void run(plain *p, uint32_t number, uint32_t position)
{
    const graph_action *action = &p->graph->actions[number];
    for (size_t i = 0; i < graph_need_count(action); i++)
        need(p, graph_reads(p->graph, action)[i], position);
    measure_must(p->graph->context, graph_sequence_add(p->graph->context, &p->sequence, number));
    for (uint32_t i = 0; i < action->write_count; i++)
        p->made[graph_writes(p->graph, action)[i]] = position + 1;
}

static void evaluate(plain *p, uint64_t budget)
{
    p->sequence.count = 0;
    memset(p->made, 0, p->graph->tensor_count * sizeof *p->made);
    for (uint32_t i = 0; i < p->graph->action_count; i++)
        run(p, i, i);
    graph_walker_start(&p->walker);
    measure_must(p->graph->context, graph_walker_run(&p->walker, p->sequence.actions, p->sequence.count));
    measure_must(p->graph->context, graph_walker_finish(&p->walker));
    p->peak = p->walker.found.peak_bytes;
    p->cost = p->walker.found.cost;
    p->over = 0;
    for (size_t i = 0; i < p->walker.found.position_count; i++)
        if (p->walker.found.live_bytes[i] > budget)
            p->over += p->walker.found.live_bytes[i] - budget;
}

uint64_t plain_annealing(const remat_graph *graph, uint64_t budget, double seconds, uint64_t seed)
{
    plain p;
    uint64_t best = UINT64_MAX, random = seed * 0x9e3779b97f4a7c15 + 1;
    begin(&p, graph);
    uint32_t *tensors = malloc((graph->tensor_count + 1) * sizeof *tensors), count = 0;
    for (uint32_t t = 0; t < graph->tensor_count; t++)
        if (p.maker[t] != GRAPH_NONE)
            tensors[count++] = t;
    evaluate(&p, budget);
    best = p.peak <= budget ? p.cost : best;
    double base = (double)p.cost, price = 20 * base / ((double)p.over + 1), energy = base + price * (double)p.over;
    double start = cpu_now(), hot = base * 0.02, cold = base * 1e-5, heat = hot;
    for (uint64_t i = 0; count; i++) {
        if (i % 64 == 0) {
            double passed = (cpu_now() - start) / seconds;
            if (passed >= 1)
                break;
            heat = hot * pow(cold / hot, passed);
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint32_t tensor = tensors[(random >> 8) % count];
        uint8_t before = p.choice[tensor];
        p.choice[tensor] = (uint8_t)((before + 1 + (random >> 3) % 2) % 3);
        evaluate(&p, budget);
        if (p.peak <= budget && p.cost < best)
            best = p.cost;
        double now = (double)p.cost + price * (double)p.over;
        if (now <= energy || (double)(random >> 11) * 0x1p-53 < exp((energy - now) / heat))
            energy = now;
        else
            p.choice[tensor] = before;
    }
    free(tensors);
    end(&p);
    return best;
}

uint64_t plain_greedy(const remat_graph *graph, uint64_t budget)
{
    plain p;
    begin(&p, graph);
    uint64_t cost = UINT64_MAX;
    for (;;) {
        evaluate(&p, budget);
        if (p.peak <= budget) {
            cost = p.cost;
            break;
        }
        uint32_t best = GRAPH_NONE;
        double least = 0;
        for (size_t i = 0; i < p.walker.found.range_count; i++) {
            const live_range *range = &p.walker.found.ranges[i];
            uint32_t t = range->tensor;
            if (t == GRAPH_NONE || p.maker[t] == GRAPH_NONE || p.choice[t] == EACH || !range->bytes ||
                range->born >= p.walker.found.peak_position || range->ends <= p.walker.found.peak_position + 1)
                continue;
            double price = (double)graph->actions[p.maker[t]].cost / (double)range->bytes;
            if (best == GRAPH_NONE || p.choice[t] < p.choice[best] ||
                (p.choice[t] == p.choice[best] && price < least)) {
                best = t;
                least = price;
            }
        }
        if (best == GRAPH_NONE)
            break;
        p.choice
            [best]++; /* what is made again once is made for every reader only where nothing else is left at the peak */
    }
    end(&p);
    return cost;
}
