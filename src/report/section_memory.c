#include "report/report_sections.h"

#include "base/alloc.h"
#include "plan/chain/plan_object.h"
#include "report/keep_all_outline.h"

#include <remat/arena.h>

/* Beyond this many tensors nobody can tell rectangles apart, and placing them takes long. */
enum { TENSORS_PLACED = 20000, ARENA_EFFORT = 20000 };

/* ---- the columns of steps and tensors ---- */

static void write_steps(report_document *to, const memory_walk *walk)
{
    size_t loss = 0;
    while (loss < walk->step_count && walk->steps[loss].op != 'l')
        loss++;
    if (loss + 1 < walk->step_count)
        report_write_phases(to, loss, loss + 1);
    document_letters_begin(to, "op");
    for (size_t i = 0; i < walk->step_count; i++)
        document_letter(to, walk->steps[i].op);
    document_letters_end(to);
    DOCUMENT_COLUMN(to, "layer", walk->step_count, document_number, walk->steps[i].layer);
    DOCUMENT_COLUMN(to, "cost", walk->step_count, document_number, walk->steps[i].cost);
}

static void write_tensors(report_document *to, const memory_walk *walk, const remat_lifetime *places)
{
    document_open(to, "tensors", '{');
    document_letters_begin(to, "kind");
    for (size_t i = 0; i < walk->tensor_count; i++)
        document_letter(to, memory_kind_letters[walk->tensors[i].kind]);
    document_letters_end(to);
    DOCUMENT_COLUMN(to, "layer", walk->tensor_count, document_number, walk->tensors[i].layer);
    DOCUMENT_COLUMN(to, "bytes", walk->tensor_count, document_number, walk->tensors[i].bytes);
    DOCUMENT_COLUMN(to, "born", walk->tensor_count, document_number, walk->tensors[i].born);
    DOCUMENT_COLUMN(to, "ends", walk->tensor_count, document_number, walk->tensors[i].ends);
    if (places)
        DOCUMENT_COLUMN(to, "offset", walk->tensor_count, document_number, places[i].offset);
    document_close(to, '}');
}

static void write_columns(report_document *to, const memory_walk *walk)
{
    document_open(to, "columns", '{');
    DOCUMENT_COLUMN(to, "step", walk->column_count, document_number, walk->columns[i].step);
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        char key[2] = {memory_kind_letters[kind], '\0'};
        DOCUMENT_COLUMN(to, key, walk->column_count, document_number, walk->columns[i].bytes[kind]);
    }
    document_close(to, '}');
}

/* ---- places in one piece of memory ---- */

static remat_status place(remat_context *context, const memory_walk *walk, remat_lifetime *places,
                          remat_arena_result *result)
{
    remat_arena_options options;
    remat_arena_options_init(&options);
    options.effort = ARENA_EFFORT;
    for (size_t i = 0; i < walk->tensor_count; i++)
        places[i] = (remat_lifetime){walk->tensors[i].born, walk->tensors[i].ends, walk->tensors[i].bytes, 0};
    return remat_arena_place(context, places, walk->tensor_count, &options, result);
}

static remat_status write_memory(report_document *to, const remat_plan *plan, const memory_walk *walk,
                                 const remat_lifetime *places)
{
    document_open(to, "memory", '{');
    document_number(to, "steps", walk->step_count);
    if (plan->figures.schedule.peak_step != REMAT_NOWHERE)
        document_number(to, "peak_step", plan->figures.schedule.peak_step);
    if (walk->columns) {
        write_columns(to, walk);
    } else {
        write_steps(to, walk);
        write_tensors(to, walk, places);
    }
    remat_status status = outline_of_chain(to, plan, walk);
    document_close(to, '}');
    return status;
}

remat_status section_memory(report_document *to, const remat_plan *plan, const remat_report_options *options)
{
    remat_context *context = to->context;
    memory_walk walk;
    remat_lifetime *places = NULL;
    remat_arena_result result = {0};
    REMAT_TRY(memory_walk_plan(plan, MEMORY_STEPS_SHOWN, MEMORY_COLUMNS, &walk));
    remat_status status = REMAT_OK;
    bool placed = options->arena && walk.tensor_count > 0 && walk.tensor_count <= TENSORS_PLACED;
    if (placed) {
        places = remat_alloc(context, walk.tensor_count, sizeof *places);
        status = places ? place(context, &walk, places, &result) : REMAT_NO_MEMORY;
    }
    if (status == REMAT_OK) {
        status = write_memory(to, plan, &walk, places);
        if (placed) {
            document_open(to, "arena", '{');
            document_number(to, "bytes", result.height);
            document_number(to, "lower_bound_bytes", result.lower_bound);
            document_close(to, '}');
        }
    }
    remat_release(context, places, walk.tensor_count, sizeof *places);
    memory_walk_clear(&walk);
    return status;
}
