/* Every layer at the limits of sizes and of memory: a tensor of 2^63 bytes or more is refused wherever it comes up, and a
 * recording that cannot grow fails in whichever operation needs the room. */
#include "base/alloc.h"
#include "layers/layer_rig.h"
#include "support/fixture.h"

/* ---- sizes ---- */

/* Bytes of fp32, or as many as there can be. */
static bool fits(uint64_t batch, const uint64_t *dims, size_t rank)
{
    unsigned __int128 bytes = 4;
    for (size_t i = 0; i < rank; i++) {
        bytes *= dims[i];
        if (bytes >> 63)
            return false;
    }
    bytes *= batch;
    return !(bytes >> 63);
}

static bool shape_fits(uint64_t batch, layer_shape shape)
{
    return fits(batch, (uint64_t[]){shape.c, shape.h, shape.w}, 3);
}

static void judge(const layer_rig *rig, remat_status status)
{
    const layer_node *node = &rig->node;
    if (status != REMAT_OK) {
        assert_int_equal(status, REMAT_INVALID);
        return;
    }
    if (!shape_fits(node->batch, node->output))
        fail_msg("%s: an output of %llu x %llu:%llu:%llu is too large", node->type->name,
                 (unsigned long long)node->batch, (unsigned long long)node->output.c,
                 (unsigned long long)node->output.h, (unsigned long long)node->output.w);
    for (uint32_t p = 0; p < node->parameter_count; p++)
        if (!fits(1, node->parameters[p].dims, node->parameters[p].rank))
            fail_msg("%s: parameter %s is too large", node->type->name, node->parameters[p].name);
}

/* Each dimension of all inputs, and the batch, as large as they come; two of them at once as well. Models check inputs
 * before, so that only outputs and parameters are judged. */
static void sizes_are_refused_where_they_come_up(void **state)
{
    fixture *f = *state;
    const backend_options plain = {.threads = 1};
    uint64_t refused = 0;
    for (size_t c = 0; c < sizeof layer_cases / sizeof layer_cases[0]; c++)
        for (unsigned which = 1; which < 16; which++)
            for (unsigned bits = 20; bits < 64; bits += 10) {
                layer_case from = layer_cases[c];
                uint64_t large = UINT64_C(1) << bits;
                from.batch = which & 1 ? large : from.batch;
                for (uint32_t i = 0; i < 4 && from.inputs[i].c; i++) {
                    layer_shape *shape = &from.inputs[i];
                    *shape = (layer_shape){which & 2 ? large : shape->c, which & 4 ? large : shape->h,
                                           which & 8 ? large * shape->w : shape->w};
                    if (shape->w == 0)
                        shape->w = large;
                }
                layer_rig rig;
                remat_status status = rig_resolve(&rig, f->context, &from, &plain);
                judge(&rig, status);
                refused += status != REMAT_OK;
                rig_forget(&rig);
            }
    assert_true(refused > 1000);
}

/* ---- memory ---- */

/* Records a pass with room for just so many bytes: it must fail for lack of memory with any fewer than it needs. */
static void record_with_little_room(fixture *f, layer_rig *rig, layer_function pass, const layer_call *call)
{
    layer_call recorded = *call;
    recorded.calls = &rig->calls;
    rig->calls.used = 0;
    expect_ok(f, pass(&rig->node, &recorded));
    size_t needed = rig->calls.used;
    for (size_t room = 8; room <= needed; room += 8) {
        recording calls;
        recording_begin(&calls, rig->device);
        calls.bytes = remat_alloc(f->context, room, 1);
        calls.capacity = room;
        recorded.calls = &calls;
        f->memory.fail_at = f->memory.calls + 1;
        remat_status status = pass(&rig->node, &recorded);
        f->memory.fail_at = 0;
        expect_status(f, status, room < needed ? REMAT_NO_MEMORY : REMAT_OK);
        assert_true(calls.used <= room);
        recording_end(&calls);
    }
}

static void recordings_fail_in_any_operation(void **state)
{
    fixture *f = *state;
    const backend_options plain = {.threads = 1};
    for (size_t c = 0; c < sizeof layer_cases / sizeof layer_cases[0]; c++)
        for (int mode = 0; mode < 4; mode++) {
            const bool accumulate = mode & 1;
            test_random random = {c};
            layer_rig rig;
            rig_freezes = mode & 2;
            rig_open(&rig, f->context, &layer_cases[c], &plain, &random);
            layer_call call = rig.call;
            call.counts_correct = !accumulate;
            if (!rig.node.view)
                record_with_little_room(f, &rig, rig.node.type->forward, &call);
            call = rig_backward_call(&rig, &rig.call, UINT32_MAX);
            for (uint32_t i = 0; i < LAYER_MAX_INPUTS; i++)
                call.accumulate_inputs[i] = accumulate;
            for (uint32_t i = 0; i < LAYER_MAX_PARAMETERS; i++)
                call.accumulate_gradients[i] = accumulate;
            if (rig.node.type->weight_gradient && !rig_freezes)
                record_with_little_room(f, &rig, rig.node.type->weight_gradient, &call);
            if (rig.node.type->input_gradient)
                record_with_little_room(f, &rig, rig.node.type->input_gradient, &call);
            rig_close(&rig);
            rig_freezes = false;
        }
}

static void kernels_that_do_not_exist_are_named(void **state)
{
    fixture *f = *state;
    const backend_options plain = {.threads = 1};
    backend *device;
    recording calls;
    expect_ok(f, backend_open(f->context, &plain, &device));
    recording_begin(&calls, device);
    char bytes[8] = {0};
    op_add add = {.a = {bytes, REMAT_INT8}, .b = {bytes, REMAT_INT8}};
    expect_status(f, record_add(&calls, &add), REMAT_INVALID);
    expect_message(f, "kernels have no add of int8, int8, none");
    assert_int_equal(calls.used, 0);
    recording_end(&calls);
    backend_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(sizes_are_refused_where_they_come_up),
        FIXTURE_TEST(recordings_fail_in_any_operation),
        FIXTURE_TEST(kernels_that_do_not_exist_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
