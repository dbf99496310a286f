/* What a forward makes and nobody reads is not made: a recomputation is often for the saved tensors alone. Which results are
 * read is found here by walking the sequence, and must agree with what the executor records. */
#include "support/fixture.h"
#include "support/small_models.h"

#include "train/executor_object.h"
#include "train/trainer_object.h"

static bool is_in(const uint32_t *list, size_t count, uint32_t tensor)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == tensor)
            return true;
    return false;
}

/* Whether anybody reads or changes what position `from` wrote, before it is written anew. */
static bool is_read(const remat_graph *graph, const graph_sequence *sequence, size_t from, uint32_t tensor)
{
    for (size_t p = from + 1; p < sequence->count; p++) {
        const graph_action *action = &graph->actions[sequence->actions[p]];
        if (is_in(graph_reads(graph, action), action->read_count, tensor) ||
            is_in(graph_updates(graph, action), action->update_count, tensor))
            return true;
        if (is_in(graph_writes(graph, action), action->write_count, tensor))
            return false;
    }
    return false;
}

/* Whether a recorded call of this position touches the instance of the tensor that is born there. */
static bool is_made(const remat_trainer *trainer, size_t position, uint32_t tensor)
{
    const graph_liveness *liveness = &trainer->plan->liveness;
    const recorded_run *run = &trainer->executor->fused;
    const live_range *range = liveness->ranges;
    while (range->born != position || range->tensor != tensor)
        range++;
    const char *at = trainer->arena.at + trainer->plan->offsets[range->buffer];
    bool made = false;
    const recorded_call *call;
    for (size_t c = run->starts[position]; c < run->starts[position + 1]; c += call->bytes) {
        call = recording_call(&run->calls, c);
        const tensor_ref *tensors = (const tensor_ref *)(call + 1);
        for (uint32_t i = 0; i < operation_table[call->op].tensors; i++)
            made |= tensors[i].at == at;
    }
    return made;
}

/* No layer writes an output for nothing. */
static size_t count_left(const remat_trainer *trainer)
{
    const remat_program *program = trainer->program;
    const graph_sequence *sequence = &trainer->plan->sequence;
    size_t left = 0;
    for (size_t p = 0; p < sequence->count; p++) {
        const program_binding bound = program_binding_of(program, sequence->actions[p]), *binding = &bound;
        if (binding->kind != ACTION_FORWARD || program->network->layers[binding->layer].node.loss)
            continue;
        uint32_t output = binding->output;
        bool read = is_read(program->graph, sequence, p, output);
        assert_true(is_made(trainer, p, output) == read);
        left += !read;
    }
    return left;
}

static remat_trainer *trainer_of(fixture *f, remat_model *model, const char *strategy)
{
    remat_train_options options;
    remat_trainer *trainer;
    remat_train_options_init(&options);
    options.strategy = strategy;
    options.threads = 1;
    expect_ok(f, remat_trainer_create(model, &options, &trainer));
    return trainer;
}

/* Losses stay what they are with everything kept. */
static void expect_same_losses(fixture *f, remat_trainer *a, remat_trainer *b, const char *name)
{
    for (int i = 0; i < 3; i++) {
        remat_step_result left, right;
        expect_ok(f, remat_trainer_step(a, &left));
        expect_ok(f, remat_trainer_step(b, &right));
        if (memcmp(&left.loss, &right.loss, sizeof left.loss) != 0)
            fail_msg("%s: the loss of step %d is %.17g, with everything kept %.17g", name, i + 1, left.loss,
                     right.loss);
    }
}

static void what_nobody_reads_is_not_made(void **state)
{
    fixture *f = *state;
    static const char *const strategies[] = {"full", "sqrt", "every-nth:2", "none"};
    size_t left = 0;
    for (size_t m = 0; small_model_name(m); m++)
        for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++) {
            remat_model *model;
            expect_ok(f, small_model_load(f->context, small_model_name(m), &model));
            remat_trainer *trainer = trainer_of(f, model, strategies[s]), *kept = trainer_of(f, model, "none");
            left += count_left(trainer);
            expect_same_losses(f, trainer, kept, small_model_name(m));
            remat_trainer_destroy(trainer);
            remat_trainer_destroy(kept);
            remat_model_destroy(model);
        }
    assert_true(left > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(what_nobody_reads_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
