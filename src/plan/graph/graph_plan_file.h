/* The file of a graph's plan (docs/formats.md, "Graph plan"): reading, judging and writing it. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_PLAN_FILE_H
#define REMAT_PLAN_GRAPH_GRAPH_PLAN_FILE_H

#include <stdio.h>

#include "plan/graph/graph_place.h"

/* The numbers that a file may state. */
enum {
    PLAN_BUDGET,
    PLAN_PEAK,
    PLAN_TOTAL_COST,
    PLAN_BASE_COST,
    PLAN_BASE_PEAK,
    PLAN_LOWER_BOUND,
    PLAN_MIN_BUDGET,
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

/* graph_plan_write.c: writes the plan that `placed` is. `numbers` are those of the file; UINT64_MAX: left out. Those that
 * the schedule determines are filled in. */
remat_status graph_plan_file_write(const remat_graph *graph, const placed_graph *placed,
                                   const uint64_t numbers[PLAN_NUMBERS], FILE *stream);

#endif
