/* The programs of the stages of a pipeline: whatever one sends another receives, wherever the network is cut. */
#include "support/fixture.h"

#include "model/program.h"

/* A tensor that is read far behind, a view, data that two layers read, and a weight that two layers share. */
static const char model_text[] =
    "[Model]\nbatch_size = 2\n[Optimizer]\ntype = sgd\n[Dataset]\ntype = random\nsamples = 4\n"
    "[in : input]\ninput_shape = 1:1:6\n"
    "[a : fully_connected]\nunit = 6\n"
    "[b : fully_connected]\nunit = 6\n"
    "[flat : flatten]\n"
    "[c : fully_connected]\nunit = 6\nshared_from = a\n"
    "[sum : addition]\ninput_layers = c, a, in\n"
    "[d : fully_connected]\nunit = 6\nshared_from = a\n"
    "[sum2 : addition]\ninput_layers = d, b\n"
    "[out : fully_connected]\nunit = 3\n"
    "[loss : cross_entropy]\n";

enum { MOST_STAGES = 4 };

typedef struct rig {
    remat_model *model;
    remat_network *network;
    remat_program *stages[MOST_STAGES];
} rig;

static bool is_matched(const program_transfer *a, uint32_t stage, const program_transfer *b, uint32_t other)
{
    return a->peer == other && b->peer == stage && a->tag == b->tag && a->sends != b->sends && a->bytes == b->bytes &&
           a->values == b->values && a->dtype == b->dtype && a->is_forward == b->is_forward;
}

static void expect_matched(const rig *of, uint32_t count)
{
    for (uint32_t s = 0; s < count; s++)
        for (size_t i = 0; i < of->stages[s]->transfer_count; i++) {
            const program_transfer *one = &of->stages[s]->transfers[i];
            const remat_program *other = of->stages[one->peer];
            size_t matches = 0;
            assert_true(one->is_forward ? one->sends == (one->peer > s) : one->sends == (one->peer < s));
            for (size_t j = 0; j < other->transfer_count; j++)
                matches += is_matched(one, s, &other->transfers[j], one->peer);
            assert_int_equal(matches, 1);
        }
}

/* Each layer runs in one stage, and each parameter is applied in one. */
static void expect_divided(const rig *of, const remat_program *whole, uint32_t count)
{
    for (action_kind kind = ACTION_FORWARD; kind <= ACTION_APPLY; kind++)
        for (size_t n = 0; n < of->network->layer_count; n++) {
            size_t alone = 0, stages = 0;
            for (size_t a = 0; a < whole->graph->action_count; a++)
                alone += whole->actions[a].kind == kind && whole->actions[a].layer == n;
            for (uint32_t s = 0; s < count; s++)
                for (size_t a = 0; a < of->stages[s]->graph->action_count; a++)
                    stages += of->stages[s]->actions[a].kind == kind && of->stages[s]->actions[a].layer == n;
            assert_int_equal(alone, stages);
        }
}

static void check_cut(fixture *f, rig *of, program_apply apply, const uint32_t *starts, uint32_t count)
{
    remat_program *whole;
    expect_ok(f, program_build(of->network, apply, &whole));
    for (uint32_t s = 0; s < count; s++) {
        const program_stage stage = {count, s, starts};
        graph_sequence plain = {0};
        graph_liveness found;
        expect_ok(f, program_build_for(of->network, apply, NULL, &stage, &of->stages[s]));
        assert_true((of->stages[s]->turn == GRAPH_NONE) == (s + 1 == count));
        expect_ok(f, graph_sequence_plain(of->stages[s]->graph, &plain)); /* a legal schedule */
        expect_ok(f, graph_walk(of->stages[s]->graph, &plain, GRAPH_PLACED, &found));
        graph_liveness_release(f->context, &found);
        graph_sequence_release(f->context, &plain);
    }
    expect_matched(of, count);
    expect_divided(of, whole, count);
    for (uint32_t s = 0; s < count; s++)
        program_destroy(of->stages[s]);
    program_destroy(whole);
}

static void test_every_cut(void **state)
{
    fixture *f = *state;
    rig of;
    FILE *stream = stream_of(model_text, strlen(model_text));
    expect_ok(f, remat_model_read(f->context, stream, "text", &of.model));
    fclose(stream);
    expect_ok(f, network_build(of.model, &(network_options){2, NETWORK_TRAINING, REMAT_FP32, NULL, 0}, &of.network));
    const uint32_t end = (uint32_t)of.network->layer_count;
    for (int apply = PROGRAM_ADD_AT_ONCE; apply <= PROGRAM_FORWARD_ONLY; apply++)
        for (uint32_t i = 2; i < end - 1; i++) {
            check_cut(f, &of, (program_apply)apply, (const uint32_t[]){0, i, end}, 2);
            for (uint32_t j = i + 1; j < end; j++) {
                check_cut(f, &of, (program_apply)apply, (const uint32_t[]){0, i, j, end}, 3);
                for (uint32_t k = j + 1; k < end; k++)
                    check_cut(f, &of, (program_apply)apply, (const uint32_t[]){0, i, j, k, end}, 4);
            }
        }
    network_destroy(of.network);
    remat_model_destroy(of.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_every_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
