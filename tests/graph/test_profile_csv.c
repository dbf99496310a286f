#include "support/fixture.h"

#define HEADER "index,type,activation_bytes,recompute_flops\n"

static void refused(fixture *f, const char *text, uint64_t line, const char *field, const char *reason)
{
    remat_profile *profile;
    expect_status(f, read_profile_text(f, text, &profile), REMAT_BAD_INPUT);
    expect_message(f, "text:");
    expect_message(f, reason);
    assert_int_equal(remat_context_error(f->context)->line, line);
    if (field)
        assert_string_equal(remat_context_error(f->context)->field, field);
}

static void four_columns_are_enough(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, read_profile_text(f, HEADER "0,attention,1024,2000000\n3,ffn,512,1000000\n", &profile));
    assert_int_equal(f->warnings, 0);
    assert_int_equal(remat_profile_layer_count(profile), 2);
    const remat_layer *layer = remat_profile_layer(profile, 1);
    assert_int_equal(layer->index, 3);
    assert_string_equal(layer->name, "layer3");
    assert_int_equal(layer->type, REMAT_FFN);
    assert_int_equal(layer->output_bytes, 512);
    assert_int_equal(layer->modes[0].backward_cost, 2000000);
    assert_int_equal(remat_profile_input_bytes(profile), 0);
    remat_profile_destroy(profile);
}

static void every_column_reads_in_any_order(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, read_profile_text(f,
                                   "backward_cost,backward_workspace_bytes,forward_cost,forward_workspace_bytes,name,"
                                   "output_bytes,recompute_flops,type,activation_bytes,index\n"
                                   "1,2,3,4,five,6,7,embedding,80,9\n",
                                   &profile));
    const remat_layer *layer = remat_profile_layer(profile, 0);
    const remat_mode *keep = &layer->modes[0];
    assert_int_equal(keep->backward_cost, 1);
    assert_int_equal(keep->backward_workspace_bytes, 2);
    assert_int_equal(keep->forward_cost, 3);
    assert_int_equal(keep->forward_workspace_bytes, 4);
    assert_string_equal(layer->name, "five");
    assert_int_equal(layer->output_bytes, 6);
    assert_int_equal(layer->recompute_flops, 7);
    assert_int_equal(layer->type, REMAT_EMBEDDING);
    assert_int_equal(keep->activation_bytes, 80);
    assert_int_equal(layer->index, 9);
    remat_profile_destroy(profile);
}

static void an_empty_cell_asks_for_the_default(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, read_profile_text(f, "index,type,activation_bytes,recompute_flops,name,output_bytes\n0,norm,10,5,,\n",
                                   &profile));
    assert_string_equal(remat_profile_layer(profile, 0)->name, "layer0");
    assert_int_equal(remat_profile_layer(profile, 0)->output_bytes, 10);
    remat_profile_destroy(profile);
    refused(f, HEADER "0,norm,,5\n", 2, "activation_bytes", "whole number");
}

static void expect_name(fixture *f, const char *cell, const char *name)
{
    char text[300];
    remat_profile *profile;
    snprintf(text, sizeof text, "name,index,type,activation_bytes,recompute_flops\n%s,0,norm,10,5\n", cell);
    expect_ok(f, read_profile_text(f, text, &profile));
    assert_string_equal(remat_profile_layer(profile, 0)->name, name);
    remat_profile_destroy(profile);
}

static void names_may_stand_in_quotes(void **state)
{
    fixture *f = *state;
    expect_name(f, "\"plain\"", "plain");
    expect_name(f, "\"a,b\"", "a,b");
    expect_name(f, "\"say \"\"hi\"\"\"", "say \"hi\"");
    expect_name(f, "\"\"\"\"", "\"");
    expect_name(f, "\"\"", "layer0");
    expect_name(f, "  \"a\"  ", "a");
    expect_name(f, "  two words  ", "two words");
    expect_name(f, "Größe", "Größe");
    expect_name(f, "in\"side", "in\"side");
}

static void blanks_inside_quotes_belong_to_the_name(void **state)
{
    fixture *f = *state;
    expect_name(f, "\" padded \"", " padded ");
    expect_name(f, "\"tab\t\"", "tab\t");
}

static void any_cell_may_stand_in_quotes(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, read_profile_text(f,
                                   "\"index\",\"type\",\"activation_bytes\",\"recompute_flops\"\n"
                                   "\"0\",\"norm\",\"10\",\"5\"\n",
                                   &profile));
    assert_int_equal(remat_profile_layer(profile, 0)->modes[0].activation_bytes, 10);
    remat_profile_destroy(profile);
}

static void line_ends_marks_and_blank_lines_do_not_matter(void **state)
{
    fixture *f = *state;
    static const char *const texts[] = {
        HEADER "0,norm,10,5",
        HEADER "0,norm,10,5\n\n\n",
        HEADER "\n   \n0,norm,10,5\n \t\n",
        "index,type,activation_bytes,recompute_flops\r\n0,norm,10,5\r\n",
        "\xef\xbb\xbf" HEADER "0,norm,10,5\n",
        "index , type , activation_bytes , recompute_flops \n 0 , norm , 10 , 5 \n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        remat_profile *profile;
        expect_ok(f, read_profile_text(f, texts[i], &profile));
        assert_int_equal(remat_profile_layer_count(profile), 1);
        assert_int_equal(remat_profile_layer(profile, 0)->recompute_flops, 5);
        remat_profile_destroy(profile);
    }
    assert_int_equal(f->warnings, 0);
}

/* White space in front says nothing about what follows. */
static void white_space_may_come_first(void **state)
{
    fixture *f = *state;
    static const char *const starts[] = {"\n", " ", "\r\n \r\n", "\xef\xbb\xbf\n"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        char text[300];
        remat_profile *profile;
        snprintf(text, sizeof text, "%s" HEADER "0,norm,10,5\n", starts[i]);
        expect_ok(f, read_profile_text(f, text, &profile));
        remat_profile_destroy(profile);
    }
    refused(f, "\n \n" HEADER "0,norm,ten,5\n", 4, "activation_bytes", "'ten'"); /* and is counted */
}

static void a_header_alone_is_an_empty_chain(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(f, read_profile_text(f, HEADER, &profile));
    assert_int_equal(remat_profile_layer_count(profile), 0);
    remat_profile_destroy(profile);
}

static void unknown_columns_are_warned_about(void **state)
{
    fixture *f = *state;
    remat_profile *profile;
    expect_ok(
        f, read_profile_text(f, "index,colour,type,activation_bytes,recompute_flops\n0,\"r,e\",norm,10,5\n", &profile));
    assert_int_equal(f->warnings, 1);
    expect_text(f->warning, "text:1: the column 'colour' is unknown");
    remat_profile_destroy(profile);
}

static void numbers_must_be_whole_and_in_range(void **state)
{
    fixture *f = *state;
    static const char *const values[] = {"9223372036854775808",
                                         "18446744073709551616",
                                         "1e400",
                                         "-1",
                                         "+1",
                                         "1.5",
                                         "1e3",
                                         "x",
                                         "0x10",
                                         "1 2",
                                         "\"\"",
                                         "999999999999999999999999999",
                                         "\xff"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, HEADER "0,norm,10,5\n1,norm,%s,5\n", values[i]);
        refused(f, text, 3, "activation_bytes", "it must be a whole number from 0 to 2^63 - 1");
        assert_int_equal(remat_context_error(f->context)->layer, 1);
    }
}

static void wrong_rows_name_line_and_field(void **state)
{
    fixture *f = *state;
    refused(f, HEADER "0,norm,10,5\n0,norm,10,5\n", 3, "index", "unique");
    refused(f, HEADER "0,Norm,10,5\n", 2, "type", "not a type");
    refused(f, HEADER "0,,10,5\n", 2, "type", "not a type");
    refused(f, HEADER "0,norm,10\n", 2, "", "3 cells; the first line names 4 columns");
    refused(f, HEADER "0,norm,10,5,\n", 2, "", "5 cells");
    refused(f, HEADER "0,norm,\"10,5\n", 2, "", "does not end on its line");
    refused(f, HEADER "0,norm,\"10\"x,5\n", 2, "", "closing quote");
    refused(f, HEADER "0,norm,4611686018427387904,5\n", 2, "activation_bytes", "sum to less than 2^63");
    refused(f, "index,type,activation_bytes,recompute_flops,output_bytes\n0,norm,10,5,11\n", 2, "output_bytes",
            "larger");
    refused(f, "name,index,type,activation_bytes,recompute_flops\n\xff,0,norm,10,5\n", 2, "name", "UTF-8");
    assert_int_equal(remat_context_error(f->context)->layer, 0);
}

static void wrong_headers_name_the_column(void **state)
{
    fixture *f = *state;
    refused(f, "", 1, "", "empty");
    refused(f, "type,activation_bytes,recompute_flops\n", 1, "index", "missing");
    refused(f, "index,activation_bytes,recompute_flops\n", 1, "type", "missing");
    refused(f, "index,type,activation_bytes\n", 1, "recompute_flops", "missing");
    refused(f, "hello\n", 1, NULL, "missing");
    refused(f, "index,type,activation_bytes,recompute_flops,index\n", 1, "index", "twice");
    refused(f, "name,name,index,type,activation_bytes,recompute_flops\n", 1, "name", "twice");
}

static void long_lines_and_many_columns_are_refused(void **state)
{
    fixture *f = *state;
    static char text[200000];
    size_t length = (size_t)snprintf(text, sizeof text, HEADER);
    memset(text + length, '1', 100000);
    refused(f, text, 2, "", "longer than 65535");
    memset(text, ',', 70);
    text[0] = 'x';
    text[70] = '\0';
    refused(f, text, 1, "", "more than 64 columns");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(four_columns_are_enough),
        FIXTURE_TEST(every_column_reads_in_any_order),
        FIXTURE_TEST(an_empty_cell_asks_for_the_default),
        FIXTURE_TEST(names_may_stand_in_quotes),
        FIXTURE_TEST(blanks_inside_quotes_belong_to_the_name),
        FIXTURE_TEST(any_cell_may_stand_in_quotes),
        FIXTURE_TEST(line_ends_marks_and_blank_lines_do_not_matter),
        FIXTURE_TEST(white_space_may_come_first),
        FIXTURE_TEST(a_header_alone_is_an_empty_chain),
        FIXTURE_TEST(unknown_columns_are_warned_about),
        FIXTURE_TEST(numbers_must_be_whole_and_in_range),
        FIXTURE_TEST(wrong_rows_name_line_and_field),
        FIXTURE_TEST(wrong_headers_name_the_column),
        FIXTURE_TEST(long_lines_and_many_columns_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
