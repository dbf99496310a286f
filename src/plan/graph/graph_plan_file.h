/* The file of a graph's plan (docs/formats.md, "Graph plan"): reading, judging and writing it. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PLAN_FILE_H
#define REMAT_PLAN_GRAPH_GRAPH_PLAN_FILE_H

#include <stdio.h>

#include "plan/graph/graph_place.h"
#include "plan/graph/graph_plan.h"

/* The numbers that a file may state. */
enum {
    PLAN_BUDGET,
    PLAN_PEAK,
    PLAN_TOTAL_COST,
    PLAN_BASE_COST,
    PLAN_BASE_PEAK,
    PLAN_LOWER_BOUND,
    PLAN_MIN_BUDGET,
    PLAN_MIN_BOUND,
    PLAN_ARENA,
    PLAN_NUMBERS
};

/* Where an instance of a tensor, or a workspace (tensor GRAPH_NONE), lies. */
typedef struct instance_place {
    uint32_t tensor;
    uint64_t born, ends, offset;
} instance_place;

typedef struct graph_plan_text {
    remat_context *context;
    uint64_t seen; /* a bit for each number, and one for each other key */
    uint64_t numbers[PLAN_NUMBERS];
    bool feasible, has_places;
    graph_sequence schedule;
    instance_place *places;
    size_t place_count, place_capacity;
} graph_plan_text;

/* Reads the file; nothing in it is judged yet. REMAT_BAD_INPUT, REMAT_IO, REMAT_NO_MEMORY: `text` is empty. */
remat_status graph_plan_read_text(remat_context *context, FILE *stream, const char *name, graph_plan_text *text);
void graph_plan_text_release(graph_plan_text *text);

static inline bool graph_plan_states(const graph_plan_text *text, unsigned number)
{
    return text->seen >> number & 1;
}
extern const char *const graph_plan_number_names[PLAN_NUMBERS];

/* graph_places.c: whether every instance has one place, and no two that live at the same time share bytes. A write that
 * is in place may lie within what it reads. REMAT_CHECK_FAILED. */
remat_status graph_places_check(const remat_graph *graph, const graph_plan_text *text, uint64_t *arena_bytes);

/* The same for places that were checked: by buffer of `placed`, whose schedule was walked, its offset. False if the
 * executor cannot use them: a tensor that is in place of another of its size must be where that one is, and offsets are
 * multiples of 64. */
remat_status graph_places_take(const remat_graph *graph, const graph_plan_text *text, placed_graph *placed,
                               bool *usable);

/* graph_plan_check.c: replays the schedule and judges all that the file states. REMAT_CHECK_FAILED. */
remat_status graph_plan_judge(const remat_graph *graph, const graph_plan_text *text, remat_graph_figures *found);

/* graph_plan_write.c: what goes into a file. */
typedef struct graph_plan_content {
    const placed_graph *placed;     /* NULL: the plan is not feasible */
    uint64_t numbers[PLAN_NUMBERS]; /* UINT64_MAX: left out. Those that the schedule determines are filled in */
    const char *strategy, *remark;  /* NULL or "": left out */
    bool only_figures;              /* neither schedule nor places */
} graph_plan_content;
/* Nothing but what the schedule determines. */
void graph_plan_content_init(const placed_graph *placed, graph_plan_content *content);
remat_status graph_plan_file_write(const remat_graph *graph, const graph_plan_content *content, FILE *stream);

/* graph_plan_given.c: reads a file, judges it, and makes its schedule a plan, with the places of the file where they can
 * be used. `binds`: what a budget would limit. `text` is what the file states; the caller releases both. REMAT_CHECK_FAILED, REMAT_BAD_INPUT, REMAT_IO,
 * REMAT_NO_MEMORY: both are empty. */
remat_status graph_plan_given(const remat_graph *graph, graph_counting binds, FILE *stream, const char *name,
                              graph_plan_text *text, graph_plan **plan);

#endif
