/* A device whose n-th call fails, for n = 1, 2, ... until none does: every call of the library returns the failure, nothing
 * is lost, and the next training works. The device is the processor behind a counter; the host keeps off its memory. */
#include "backend/cpu/cpu_backend.h"
#include "base/error.h"
#include "support/fixture.h"
#include "support/scratch_files.h"

#include <remat/train.h>

static uint64_t calls, fail_at;
static bool ending; /* what destroys has no status to return: its calls do not count */

static remat_status count_call(remat_context *context)
{
    if (ending)
        return REMAT_OK;
    return ++calls == fail_at ? remat_fail(context, REMAT_IO, NULL, "the device is gone") : REMAT_OK;
}

extern const backend_type backend_cpu, backend_fenced;

static remat_status open_counted(remat_context *context, const backend_options *options, backend **made)
{
    REMAT_TRY(backend_cpu.open(context, options, made));
    (*made)->type = &backend_fenced;
    (*made)->host_visible = false;
    return REMAT_OK;
}

static void close_counted(backend *owner)
{
    backend_cpu.close(owner);
}

static remat_status allocate(backend *owner, memory_kind kind, uint64_t bytes, bool zeroed, backend_memory *memory)
{
    REMAT_TRY(count_call(owner->context));
    return backend_cpu.allocate(owner, kind, bytes, zeroed, memory);
}

static remat_status queue_create(backend *owner, backend_queue **made)
{
    *made = NULL;
    REMAT_TRY(count_call(owner->context));
    return backend_cpu.queue_create(owner, made);
}

static void queue_destroy(backend_queue *queue)
{
    backend_cpu.queue_destroy(queue);
}

static remat_status run(backend_queue *queue, const recording *recorded, size_t first, size_t end)
{
    REMAT_TRY(count_call(queue->owner->context));
    return backend_cpu.run(queue, recorded, first, end);
}

static remat_status copy_in(backend_queue *queue, void *to, const void *host, uint64_t bytes)
{
    REMAT_TRY(count_call(queue->owner->context));
    return backend_cpu.copy_in(queue, to, host, bytes);
}

static remat_status copy_out(backend_queue *queue, void *host, const void *from, uint64_t bytes)
{
    REMAT_TRY(count_call(queue->owner->context));
    return backend_cpu.copy_out(queue, host, from, bytes);
}

static remat_status copy_within(backend_queue *queue, void *to, const void *from, uint64_t bytes)
{
    REMAT_TRY(count_call(queue->owner->context));
    return backend_cpu.copy_within(queue, to, from, bytes);
}

static remat_status wait(backend_queue *queue)
{
    REMAT_TRY(count_call(queue->owner->context));
    return backend_cpu.wait(queue);
}

static remat_status event_create(backend *owner, backend_event **made)
{
    *made = NULL;
    REMAT_TRY(count_call(owner->context));
    return backend_cpu.event_create(owner, made);
}

static void event_destroy(backend *owner, backend_event *event)
{
    backend_cpu.event_destroy(owner, event);
}

static remat_status event_record(backend_queue *queue, backend_event *event)
{
    REMAT_TRY(count_call(queue->owner->context));
    return backend_cpu.event_record(queue, event);
}

static remat_status event_wait(backend *owner, backend_event *event, uint64_t *nanoseconds)
{
    REMAT_TRY(count_call(owner->context));
    return backend_cpu.event_wait(owner, event, nanoseconds);
}

/* In the place of the device that other tests use. */
const backend_type backend_fenced = {
    .name = "fenced",
    .open = open_counted,
    .close = close_counted,
    .allocate = allocate,
    .release = cpu_backend_release,
    .find_kernel = cpu_backend_find_kernel,
    .workspace = cpu_backend_workspace,
    .measure_limits = cpu_backend_measure_limits,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .run = run,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_within = copy_within,
    .wait = wait,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
};

/* ---- the flow ---- */

static const char model_text[] = "[Model]\n"
                                 "batch_size = 2\n"
                                 "accumulate = %d\n"
                                 "clip_norm = %d\n"
                                 "[Optimizer : adam]\n"
                                 "[Dataset : random]\n"
                                 "samples = 12\n"
                                 "validation_split = 0.34\n"
                                 "[in]\n"
                                 "type = input\n"
                                 "input_shape = 1:1:4\n"
                                 "[fc]\n"
                                 "type = fully_connected\n"
                                 "unit = 3\n"
                                 "[norm]\n"
                                 "type = batch_normalization\n"
                                 "[out]\n"
                                 "type = fully_connected\n"
                                 "unit = 2\n"
                                 "[loss]\n"
                                 "type = mse\n";

#define THEN(call)              \
    do {                        \
        if (status == REMAT_OK) \
            status = (call);    \
    } while (0)

static void see_gradient(void *user, size_t parameter, const float *gradient, uint64_t count)
{
    (void)user, (void)parameter, (void)gradient, (void)count;
}

static void see_action(void *user, const remat_action *action)
{
    (void)user, (void)action;
}

static remat_status use_trainer(remat_model *model, const remat_train_options *options, const char *path, bool watched)
{
    remat_trainer *trainer = NULL;
    remat_step_result result;
    remat_validation_result validation;
    remat_profile *profile = NULL;
    float values[12];
    remat_status status = remat_trainer_create(model, options, &trainer);
    if (status == REMAT_OK && watched) {
        remat_trainer_on_gradient(trainer, see_gradient, NULL);
        status = remat_trainer_on_action(trainer, see_action, NULL);
    }
    THEN(remat_trainer_step(trainer, &result));
    THEN(remat_trainer_step(trainer, &result));
    THEN(remat_trainer_validate(trainer, &validation));
    THEN(remat_trainer_read_parameter(trainer, 0, values, 12));
    THEN(remat_trainer_write_parameter(trainer, 0, values, 12));
    THEN(remat_trainer_read_moment(trainer, 0, 0, values, 12));
    THEN(remat_trainer_save(trainer, path, true));
    THEN(remat_trainer_resume(trainer, path));
    THEN(remat_trainer_measure(trainer, 1, &profile));
    remat_profile_destroy(profile);
    ending = true;
    remat_trainer_destroy(trainer);
    ending = false;
    return status;
}

static remat_status use_predictor(remat_model *model, const remat_train_options *options, const char *path)
{
    remat_predictor *predictor = NULL;
    remat_prediction prediction;
    const float inputs[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const void *const list[] = {inputs};
    remat_status status = remat_predictor_create(model, path, options, &predictor);
    THEN(remat_predictor_run(predictor, list, &prediction));
    THEN(remat_predictor_run_samples(predictor, 3, &prediction));
    ending = true;
    remat_predictor_destroy(predictor);
    ending = false;
    return status;
}

static void fail_each_call(fixture *f, bool several, bool watched)
{
    char text[sizeof model_text + 20];
    snprintf(text, sizeof text, model_text, several ? 2 : 1, several ? 1 : 0);
    FILE *stream = stream_of(text, strlen(text));
    remat_model *model;
    expect_ok(f, remat_model_read(f->context, stream, "model.ini", &model));
    fclose(stream);
    remat_train_options options;
    remat_train_options_init(&options);
    options.device = "fenced";
    options.threads = 1;
    options.strategy = "none";
    const char *path = scratch_path("weights");
    uint64_t held = 0;
    bool reached = true;
    uint64_t n = 0;
    for (; reached && n < 20000; n++) { /* first with no failure, for what the model keeps, and for the file */
        calls = 0;
        fail_at = n;
        remat_status status = use_trainer(model, &options, path, watched);
        THEN(use_predictor(model, &options, path));
        reached = n == 0 || calls >= n;
        if (status != (reached && n ? REMAT_IO : REMAT_OK))
            fail_msg("call %llu failed with status %d: %s", (unsigned long long)n, status,
                     remat_context_message(f->context));
        if (status == REMAT_IO)
            expect_message(f, "the device is gone");
        if (n == 0)
            held = f->memory.bytes;
        else if (f->memory.bytes != held)
            fail_msg("call %llu failed and %lld bytes were lost", (unsigned long long)n,
                     (long long)(f->memory.bytes - held));
    }
    assert_true(n > 50 && n < 20000);
    remat_model_destroy(model);
}

static void every_call_of_a_device_may_fail(void **state)
{
    fixture *f = *state;
    fail_each_call(f, false, false);
    fail_each_call(f, true, false);
    fail_each_call(f, false, true);
    fail_each_call(f, true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FIXTURE_TEST(every_call_of_a_device_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
