#include "test_tape_toy.h"

typedef struct verify_case {
    remat_profile *profile;
    toy t;
    remat_tape *tape;
} verify_case;

/* Layers of 10,000 bytes, of which 6,000 are the output. */
static void begin(fixture *f, verify_case *c, const char *strategy, remat_tape_verify level, remat_element element)
{
    expect_ok(f, remat_profile_create(f->context, &c->profile));
    expect_ok(f, remat_profile_set_input_bytes(c->profile, 100));
    for (int i = 0; i < 12; i++) {
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.activation_bytes = 10000;
        layer.output_bytes = 6000;
        layer.recompute_flops = 1;
        expect_ok(f, remat_profile_add_layer(c->profile, &layer));
    }
    toy_begin(&c->t, c->profile, 12, false);
    remat_tape_callbacks callbacks = toy_callbacks(&c->t);
    remat_tape_options options;
    remat_tape_options_init(&options);
    options.strategy = strategy;
    options.verify = level;
    options.element = element;
    expect_ok(f, remat_tape_create(f->context, c->profile, &callbacks, &options, &c->tape));
}

static void end(verify_case *c)
{
    remat_tape_destroy(c->tape);
    toy_end(&c->t);
    remat_profile_destroy(c->profile);
}

static remat_status run(verify_case *c, uint64_t layer, size_t byte)
{
    unsigned char input[100] = {3}, gradient[100];
    c->t.unsteady_layer = layer + 1;
    c->t.unsteady_byte = byte;
    return remat_tape_run(c->tape, input, gradient);
}

static void hashes_name_layer_and_chunk(void **state)
{
    fixture *f = *state;
    verify_case c;
    begin(f, &c, "full:4", REMAT_VERIFY_HASHES, REMAT_FLOATS);
    expect_status(f, run(&c, 5, 0), REMAT_CHECK_FAILED);
    expect_message(f, "layer 5: recompute: chunk 0 (bytes 0 to 4095) of its output");
    assert_int_equal(remat_context_error(f->context)->layer, 5);
    expect_status(f, run(&c, 9, 5999), REMAT_CHECK_FAILED);
    expect_message(f, "layer 9: recompute: chunk 1 (bytes 4096 to 5999) of its output");
    expect_message(f, "does not make the same of the same input");
    c.t.wrong = 0;
    expect_ok(f, run(&c, 100, 0)); /* steady again: the tape can be used again */
    assert_int_equal(c.t.wrong, 0);
    end(&c);
}

/* A state that is saved more than once is compared, too: layer 11 is saved twice by this schedule. */
static void states_are_compared_behind_the_output(void **state)
{
    fixture *f = *state;
    verify_case c;
    begin(f, &c, "none", REMAT_VERIFY_OFF, REMAT_FLOATS);
    remat_tape_destroy(c.tape);
    capture text;
    capture_begin(&text);
    fprintf(text.stream, "{\"format\": \"remat-plan\", \"version\": 1, \"schedule\": [");
    for (int i = 0; i < 12; i++)
        fprintf(text.stream, "{\"op\": \"forward\", \"layer\": %d, \"save\": \"keep\"},", i);
    fprintf(text.stream, "{\"op\": \"loss\"}, {\"op\": \"drop\", \"what\": \"s\", \"layer\": 11},"
                         "{\"op\": \"forward\", \"layer\": 11, \"save\": \"keep\"}");
    for (int i = 12; i-- > 0;)
        fprintf(text.stream, ",{\"op\": \"backward\", \"layer\": %d}", i);
    fprintf(text.stream, "]}");
    capture_end(&text);
    remat_plan *plan;
    expect_ok(f, read_plan_text(f, text.text, c.profile, &plan));
    for (int level = 1; level <= 2; level++) {
        remat_tape_options options;
        remat_tape_options_init(&options);
        options.plan = plan;
        options.verify = (remat_tape_verify)level;
        remat_tape_callbacks callbacks = toy_callbacks(&c.t);
        expect_ok(f, remat_tape_create(f->context, c.profile, &callbacks, &options, &c.tape));
        expect_status(f, run(&c, 11, 9999), REMAT_CHECK_FAILED);
        expect_message(f, level == 1 ? "layer 11: recompute: chunk 0 (bytes 0 to 3999) of its state behind the output"
                                     : "layer 11: recompute: element 999 of its state behind the output is");
        remat_tape_destroy(c.tape);
    }
    c.tape = NULL;
    free(text.text);
    remat_plan_destroy(plan);
    end(&c);
}

static void copies_name_the_element_and_both_values(void **state)
{
    fixture *f = *state;
    verify_case c;
    begin(f, &c, "full:4", REMAT_VERIFY_COPIES, REMAT_FLOATS);
    expect_status(f, run(&c, 6, 4 * 17 + 2), REMAT_CHECK_FAILED);
    expect_message(f, "layer 6: recompute: element 17 of its output is ");
    expect_message(f, ", the first time it was ");
    end(&c);
    begin(f, &c, "full:4", REMAT_VERIFY_COPIES, REMAT_BYTES);
    expect_status(f, run(&c, 6, 4 * 17 + 2), REMAT_CHECK_FAILED);
    expect_message(f, "layer 6: recompute: byte 70 of its output is ");
    end(&c);
}

/* Off, nothing is noticed (and nothing is paid). */
static void off_means_off(void **state)
{
    fixture *f = *state;
    verify_case c;
    remat_tape_statistics statistics;
    begin(f, &c, "full:4", REMAT_VERIFY_OFF, REMAT_FLOATS);
    expect_ok(f, run(&c, 6, 70));
    remat_tape_get_statistics(c.tape, &statistics);
    assert_int_equal(statistics.verify_ns, 0);
    end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(hashes_name_layer_and_chunk),
        FIXTURE_TEST(states_are_compared_behind_the_output),
        FIXTURE_TEST(copies_name_the_element_and_both_values),
        FIXTURE_TEST(off_means_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
