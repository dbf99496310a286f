/* Programs whose structs are smaller or larger than the library's: those of an older or of a newer release. Nothing is
 * written past the size that the program passes; what the library does not know is set to 0; and a newer option that is
 * used is refused, not ignored. */
#include "support/fixture.h"
#include "train/trainer_toy.h"

#include <unistd.h>

enum { MORE = 64, ROOM = 1024 };

/* ---- structs that the library fills in ---- */

/* Fills in a struct of this size. */
typedef void (*fill_fn)(void *object, void *to, size_t size);

typedef struct filled {
    fill_fn fill;
    void *object;
    size_t known;    /* the library's size */
    bool is_options; /* begins with struct_size */
    bool is_steady;  /* gives the same bytes each time */
} filled;

static void check_size(const filled *of, const unsigned char *whole, size_t size)
{
    unsigned char room[ROOM];
    memset(room, 0xa5, sizeof room);
    of->fill(of->object, room, size);
    for (size_t i = size; i < sizeof room; i++)
        if (room[i] != 0xa5)
            fail_msg("byte %zu of a struct of %zu bytes was written", i, size);
    for (size_t i = of->known; i < size; i++)
        assert_int_equal(room[i], 0);
    size_t first = of->is_options ? sizeof(size_t) : 0, last = size < of->known ? size : of->known;
    if (of->is_steady && last > first)
        assert_memory_equal(room + first, whole + first, last - first);
    if (of->is_options && size >= sizeof size)
        assert_memory_equal(room, &size, sizeof size);
}

static void check_filled(filled of)
{
    unsigned char whole[ROOM];
    assert_true(of.known + MORE < ROOM);
    of.fill(of.object, whole, of.known);
    for (size_t size = 0; size <= of.known + MORE; size += 8)
        check_size(&of, whole, size);
}

#define FILL(name, call)                                  \
    static void name(void *object, void *to, size_t size) \
    {                                                     \
        (void)object;                                     \
        call;                                             \
    }
FILL(fill_tokenizer_options, remat_tokenizer_options_init_sized(to, size))
FILL(fill_samples_options, remat_samples_options_init_sized(to, size))
FILL(fill_mode_options, remat_mode_options_init_sized(to, size))
FILL(fill_layer_options, remat_layer_options_init_sized(to, size))
FILL(fill_plan_options, remat_plan_options_init_sized(to, size))
FILL(fill_arena_options, remat_arena_options_init_sized(to, size))
FILL(fill_checkpointer_options, remat_checkpointer_options_init_sized(to, size))
FILL(fill_tape_options, remat_tape_options_init_sized(to, size))
FILL(fill_train_options, remat_train_options_init_sized(to, size))
FILL(fill_run_hooks, remat_run_hooks_init_sized(to, size))
FILL(fill_generate_options, remat_generate_options_init_sized(to, size))
FILL(fill_report_options, remat_report_options_init_sized(to, size))
FILL(fill_statistics, remat_plan_get_statistics_sized(object, to, size))
FILL(fill_point, assert_int_equal(remat_sweep_get_point_sized(object, 1, to, size), REMAT_OK))
FILL(fill_counters, remat_checkpointer_get_counters_sized(object, to, size))
FILL(fill_tape_statistics, remat_tape_get_statistics_sized(object, to, size))
FILL(fill_model_layer, assert_int_equal(remat_model_get_layer_sized(object, 1, to, size), REMAT_OK))
FILL(fill_model_input, assert_int_equal(remat_model_get_input_sized(object, 0, to, size), REMAT_OK))
FILL(fill_model_labels, assert_int_equal(remat_model_get_labels_sized(object, to, size), REMAT_OK))
FILL(fill_trainer_figures, remat_trainer_get_figures_sized(object, to, size))
FILL(fill_train_point, assert_int_equal(remat_trainer_get_point_sized(object, 0, to, size), REMAT_OK))
FILL(fill_step, assert_int_equal(remat_trainer_step_sized(object, to, size), REMAT_OK))
FILL(fill_validation, assert_int_equal(remat_trainer_validate_sized(object, to, size), REMAT_OK))
FILL(fill_run, assert_int_equal(remat_trainer_run_sized(object, NULL, to, size), REMAT_OK))
FILL(fill_parameter, assert_int_equal(remat_trainer_get_parameter_sized(object, 0, to, size), REMAT_OK))
FILL(fill_samples, assert_int_equal(remat_predictor_run_samples_sized(object, 0, to, size), REMAT_OK))

static void options_are_initialised_to_the_size_of_the_program(void **state)
{
    (void)state;
    check_filled((filled){fill_mode_options, NULL, sizeof(remat_mode_options), true, true});
    check_filled((filled){fill_layer_options, NULL, sizeof(remat_layer_options), true, true});
    check_filled((filled){fill_tokenizer_options, NULL, sizeof(remat_tokenizer_options), true, true});
    check_filled((filled){fill_samples_options, NULL, sizeof(remat_samples_options), true, true});
    check_filled((filled){fill_plan_options, NULL, sizeof(remat_plan_options), true, true});
    check_filled((filled){fill_arena_options, NULL, sizeof(remat_arena_options), true, true});
    check_filled((filled){fill_checkpointer_options, NULL, sizeof(remat_checkpointer_options), true, true});
    check_filled((filled){fill_tape_options, NULL, sizeof(remat_tape_options), true, true});
    check_filled((filled){fill_train_options, NULL, sizeof(remat_train_options), true, true});
    check_filled((filled){fill_run_hooks, NULL, sizeof(remat_run_hooks), true, true});
    check_filled((filled){fill_generate_options, NULL, sizeof(remat_generate_options), true, true});
    check_filled((filled){fill_report_options, NULL, sizeof(remat_report_options), true, true});
}

static remat_profile *four_layers(fixture *f)
{
    remat_profile *profile;
    expect_ok(f, remat_profile_create(f->context, &profile));
    for (uint64_t i = 0; i < 4; i++)
        expect_ok(f, remat_profile_add(profile, REMAT_OTHER, 64 * (i + 1), 10));
    return profile;
}

static int do_nothing(void *user, const remat_tape_call *call)
{
    (void)user;
    (void)call;
    return 0;
}

typedef struct written_plan_case {
    remat_context *context;
    const remat_profile *profile;
    const char *text;
} written_plan_case;

static void fill_figures(void *object, void *to, size_t size)
{
    const written_plan_case *plan = object;
    FILE *stream = stream_of(plan->text, strlen(plan->text));
    assert_int_equal(remat_plan_check_sized(plan->context, stream, "plan", plan->profile, to, size), REMAT_OK);
    fclose(stream);
}

static void results_of_plans_end_where_the_program_says(void **state)
{
    fixture *f = *state;
    remat_profile *profile = four_layers(f);
    remat_plan *plan;
    remat_sweep *sweep;
    remat_checkpointer *cp;
    remat_tape *tape;
    const remat_tape_callbacks callbacks = {do_nothing, do_nothing, do_nothing, NULL};
    expect_ok(f, make_plan(f, profile, "none", REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan));
    expect_ok(f, remat_sweep_create(f->context, profile, NULL, &sweep));
    expect_ok(f, remat_checkpointer_create(f->context, NULL, &cp));
    expect_ok(f, remat_tape_create(f->context, profile, &callbacks, NULL, &tape));
    assert_true(remat_sweep_count(sweep) > 1);
    char *text = written_plan(plan);
    written_plan_case written = {f->context, profile, text};
    check_filled((filled){fill_figures, &written, sizeof(remat_figures), false, true});
    free(text);
    check_filled((filled){fill_statistics, plan, sizeof(remat_plan_statistics), false, true});
    check_filled((filled){fill_point, sweep, sizeof(remat_sweep_point), false, true});
    check_filled((filled){fill_counters, cp, sizeof(remat_store_counters), false, true});
    check_filled((filled){fill_tape_statistics, tape, sizeof(remat_tape_statistics), false, true});
    unsigned char room[ROOM];
    remat_simulator *simulator; /* of no layers, which is at its end at once */
    remat_profile *empty;
    expect_ok(f, remat_profile_create(f->context, &empty));
    expect_ok(f, remat_simulator_create(f->context, empty, &simulator));
    memset(room, 0xa5, sizeof room);
    expect_ok(f, remat_simulator_finish_sized(simulator, (remat_figures *)(void *)room, 16));
    assert_int_equal(room[15], 0);
    assert_int_equal(room[16], 0xa5);
    remat_simulator_destroy(simulator);
    remat_profile_destroy(empty);
    remat_tape_destroy(tape);
    remat_checkpointer_destroy(cp);
    remat_sweep_destroy(sweep);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void results_of_training_end_where_the_program_says(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    remat_model *model = toy_model(f, "adam", REMAT_PROPERTIES("learning_rate=0.01"), REMAT_PROPERTIES("batch_size=4"));
    remat_trainer *trainer = toy_trainer(f, model, &data, 3);
    size_t points;
    expect_ok(f, remat_trainer_find_curve(trainer, &points));
    check_filled((filled){fill_model_layer, model, sizeof(remat_model_layer), false, true});
    check_filled((filled){fill_model_input, model, sizeof(remat_sample_field), false, true});
    check_filled((filled){fill_model_labels, model, sizeof(remat_sample_field), false, true});
    check_filled((filled){fill_trainer_figures, trainer, sizeof(remat_trainer_figures), false, true});
    check_filled((filled){fill_train_point, trainer, sizeof(remat_train_point), false, true});
    check_filled((filled){fill_parameter, trainer, sizeof(remat_parameter), false, true});
    check_filled((filled){fill_step, trainer, sizeof(remat_step_result), false, false});
    check_filled((filled){fill_run, trainer, sizeof(remat_run_result), false, false});
    check_filled((filled){fill_validation, trainer, sizeof(remat_validation_result), false, true});
    remat_trainer_destroy(trainer);
    remat_model_destroy(model);
}

static void predictions_and_columns_end_where_the_program_says(void **state)
{
    fixture *f = *state;
    toy data = {.fail_at = UINT64_MAX, .scale = 1};
    remat_model *model = toy_model(f, "sgd", REMAT_PROPERTIES("learning_rate=0.01"), REMAT_PROPERTIES("batch_size=2"));
    remat_train_options options = toy_options(&data);
    remat_trainer *trainer = toy_trainer(f, model, &data, 3);
    remat_predictor *predictor;
    char path[] = "/tmp/remat-sizes-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    expect_ok(f, remat_trainer_save(trainer, path, false));
    remat_trainer_destroy(trainer);
    options.sample = NULL;
    expect_ok(f, remat_model_set_dataset(model, "random", REMAT_PROPERTIES("samples=8")));
    expect_ok(f, remat_predictor_create(model, path, &options, &predictor));
    check_filled((filled){fill_samples, predictor, sizeof(remat_prediction), false, true});
    const float x[2][2] = {{1, 2}, {3, 4}};
    const void *inputs[1] = {x};
    unsigned char room[ROOM];
    memset(room, 0xa5, sizeof room);
    expect_ok(f, remat_predictor_run_sized(predictor, inputs, (remat_prediction *)(void *)room, 16));
    assert_int_equal(room[16], 0xa5);
    remat_predictor_destroy(predictor);
    remat_model_destroy(model);
    close(file);
    remove(path);
    /* Columns are an array: the size is the stride. */
    struct newer_column {
        remat_memory_column known;
        uint64_t more;
    } columns[5];
    remat_memory_column plain[5];
    remat_profile *profile = four_layers(f);
    remat_plan *plan;
    size_t used, plain_used;
    expect_ok(f, make_plan(f, profile, "none", REMAT_NO_BUDGET, REMAT_COUNT_PEAK, &plan));
    memset(columns, 0xa5, sizeof columns);
    expect_ok(f, remat_plan_memory(plan, plain, 5, &plain_used));
    expect_ok(f, remat_plan_memory_sized(plan, &columns[0].known, sizeof columns[0], 5, &used));
    assert_int_equal(used, plain_used);
    for (size_t i = 0; i < used; i++) {
        assert_memory_equal(&columns[i].known, &plain[i], sizeof plain[i]);
        assert_int_equal(columns[i].more, 0);
    }
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void limits_end_where_the_program_says(void **state)
{
    fixture *f = *state;
    for (size_t size = 8; size <= sizeof(remat_machine_limits) + 8; size += sizeof(remat_machine_limits)) {
        unsigned char room[ROOM];
        memset(room, 0xa5, sizeof room);
        expect_ok(f, remat_measure_limits_sized(f->context, 1, (remat_machine_limits *)(void *)room, size));
        assert_int_equal(room[size], 0xa5);
    }
}

/* ---- structs that the program fills in ---- */

/* Options with a member that this library does not know, at its end. */
#define NEWER(type, name) \
    struct {              \
        type known;       \
        uint64_t unknown; \
    } name;               \
    type##_init_sized((type *)&name, sizeof name)

static void newer_options_work_unless_they_are_used(void **state)
{
    fixture *f = *state;
    remat_profile *profile = four_layers(f);
    remat_plan *plan;
    remat_tape *tape;
    remat_checkpointer *cp;
    const remat_tape_callbacks callbacks = {do_nothing, do_nothing, do_nothing, NULL};
    NEWER(remat_plan_options, plans);
    NEWER(remat_tape_options, tapes);
    NEWER(remat_checkpointer_options, checkpointers);
    plans.known.strategy = "full";
    expect_ok(f, remat_plan_create(f->context, profile, &plans.known, &plan));
    assert_string_equal(remat_plan_strategy(plan), "full");
    remat_plan_destroy(plan);
    expect_ok(f, remat_tape_create(f->context, profile, &callbacks, &tapes.known, &tape));
    remat_tape_destroy(tape);
    expect_ok(f, remat_checkpointer_create(f->context, &checkpointers.known, &cp));
    assert_int_equal(remat_checkpointer_get_options(cp)->struct_size, sizeof(remat_checkpointer_options));
    remat_checkpointer_destroy(cp);
    plans.unknown = tapes.unknown = checkpointers.unknown = 1;
    expect_status(f, remat_plan_create(f->context, profile, &plans.known, &plan), REMAT_INVALID);
    expect_message(f, "does not know");
    expect_status(f, remat_tape_create(f->context, profile, &callbacks, &tapes.known, &tape), REMAT_INVALID);
    expect_status(f, remat_checkpointer_create(f->context, &checkpointers.known, &cp), REMAT_INVALID);
    remat_profile_destroy(profile);
}

static void older_options_leave_the_rest_at_its_default(void **state)
{
    fixture *f = *state;
    remat_profile *profile = four_layers(f);
    remat_plan *plan;
    struct {
        size_t struct_size;
        const char *strategy;
    } older;
    remat_plan_options_init_sized((remat_plan_options *)(void *)&older, sizeof older);
    older.strategy = "none";
    expect_ok(f, remat_plan_create(f->context, profile, (const remat_plan_options *)(const void *)&older, &plan));
    assert_false(remat_plan_get_figures(plan)->has_budget);
    remat_plan_destroy(plan);
    remat_profile_destroy(profile);
}

static void modes_have_the_stride_of_the_program(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    struct {
        remat_mode_options known;
        uint64_t unknown;
    } modes[2];
    remat_layer_options layer;
    remat_layer_options_init(&layer);
    for (uint64_t i = 0; i < 2; i++) {
        remat_mode_options_init_sized(&modes[i].known, sizeof modes[i]);
        modes[i].known.name = i ? "second" : "first";
        modes[i].known.activation_bytes = 10 + i;
    }
    layer.activation_bytes = 100;
    layer.modes = &modes[0].known;
    layer.mode_count = 2;
    expect_ok(f, remat_profile_create(f->context, &profile));
    expect_ok(f, remat_profile_add_layer(profile, &layer));
    const remat_layer *made = remat_profile_layer(profile, 0);
    assert_string_equal(remat_layer_mode(made, 2)->name, "second");
    assert_int_equal(remat_layer_mode(made, 2)->activation_bytes, 11);
    assert_null(remat_layer_mode(made, 3));
    modes[1].unknown = 1;
    expect_status(f, remat_profile_add_layer(profile, &layer), REMAT_INVALID);
    remat_profile_destroy(profile);
}

static void lifetimes_have_the_stride_of_the_program(void **state)
{
    fixture *f = *state;
    struct newer_lifetime {
        remat_lifetime known;
        uint64_t unknown;
    } tensors[3] = {{{0, 4, 10, 99}, 0}, {{2, 6, 5, 99}, 0}, {{5, 9, 10, 99}, 0}};
    remat_lifetime plain[3] = {{0, 4, 10, 99}, {2, 6, 5, 99}, {5, 9, 10, 99}};
    struct newer_result {
        remat_arena_result known;
        uint64_t more;
    } result = {{0, 0}, 7};
    remat_arena_result wanted;
    expect_ok(f, remat_arena_place(f->context, plain, 3, NULL, &wanted));
    expect_ok(f, remat_arena_place_sized(f->context, &tensors[0].known, sizeof tensors[0], 3, NULL, &result.known,
                                         sizeof result));
    assert_int_equal(result.known.height, wanted.height);
    assert_int_equal(result.more, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tensors[i].known.offset, plain[i].offset);
        assert_int_equal(tensors[i].unknown, 0);
    }
    expect_ok(f, remat_arena_check_sized(f->context, &tensors[0].known, sizeof tensors[0], 3, 1, wanted.height));
    expect_status(f, remat_arena_check_sized(f->context, &tensors[0].known, sizeof tensors[0], 3, 1, wanted.height - 1),
                  REMAT_CHECK_FAILED);
    tensors[2].unknown = 1;
    expect_status(f,
                  remat_arena_place_sized(f->context, &tensors[0].known, sizeof tensors[0], 3, NULL, &result.known,
                                          sizeof result),
                  REMAT_INVALID);
}

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    (void)alignment;
    return malloc(bytes);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static void newer_functions_are_refused_where_they_are_set(void **state)
{
    fixture *f = *state;
    struct {
        remat_allocator known;
        void *unknown;
    } allocator = {{allocate, release, NULL}, NULL};
    struct {
        remat_tape_callbacks known;
        void *unknown;
    } callbacks = {{do_nothing, do_nothing, do_nothing, NULL}, NULL};
    remat_context *context;
    remat_tape *tape;
    remat_profile *profile = four_layers(f);
    assert_int_equal(remat_context_create_sized(&allocator.known, sizeof allocator, &context), REMAT_OK);
    remat_context_destroy(context);
    expect_ok(f, remat_tape_create_sized(f->context, profile, &callbacks.known, sizeof callbacks, NULL, &tape));
    remat_tape_destroy(tape);
    allocator.unknown = callbacks.unknown = f;
    assert_int_equal(remat_context_create_sized(&allocator.known, sizeof allocator, &context), REMAT_INVALID);
    assert_null(context);
    expect_status(f, remat_tape_create_sized(f->context, profile, &callbacks.known, sizeof callbacks, NULL, &tape),
                  REMAT_INVALID);
    assert_null(tape);
    remat_profile_destroy(profile);
}

/* A struct inside another is its last member, so that both can grow. */
_Static_assert(offsetof(remat_plan_figures, schedule) + sizeof(remat_figures) == sizeof(remat_plan_figures), "");
_Static_assert(offsetof(remat_tape_statistics, store) + sizeof(remat_store_counters) == sizeof(remat_tape_statistics),
               "");
/* These never change. */
_Static_assert(sizeof(remat_step) == 8 && sizeof(remat_random) == 16 && sizeof(remat_live_tensor) == 16, "");
_Static_assert(sizeof(remat_checkpointer_layer) == 8 + sizeof(size_t), "");

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_initialised_to_the_size_of_the_program),
        FIXTURE_TEST(results_of_plans_end_where_the_program_says),
        FIXTURE_TEST(results_of_training_end_where_the_program_says),
        FIXTURE_TEST(predictions_and_columns_end_where_the_program_says),
        FIXTURE_TEST(limits_end_where_the_program_says),
        FIXTURE_TEST(newer_options_work_unless_they_are_used),
        FIXTURE_TEST(older_options_leave_the_rest_at_its_default),
        FIXTURE_TEST(modes_have_the_stride_of_the_program),
        FIXTURE_TEST(lifetimes_have_the_stride_of_the_program),
        FIXTURE_TEST(newer_functions_are_refused_where_they_are_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
