#include "support/plan_json.h"

json_t *plan_tree(const remat_plan *plan)
{
    char *text = written_plan(plan);
    json_t *tree = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(tree);
    free(text);
    return tree;
}

uint64_t plan_number(const json_t *tree, const char *key)
{
    const json_t *value = json_object_get(tree, key);
    if (!json_is_integer(value))
        fail_msg("%s is not there, or no whole number", key);
    return (uint64_t)json_integer_value(value);
}

static uint16_t mode_number(const remat_layer *layer, const char *name)
{
    for (uint16_t i = 0; i < layer->mode_count; i++)
        if (strcmp(layer->modes[i].name, name) == 0)
            return i;
    fail_msg("the layer has no mode '%s'", name);
    return REMAT_NO_SAVE;
}

void plan_tree_steps(const json_t *tree, const remat_profile *profile, step_list *steps)
{
    const json_t *schedule = json_object_get(tree, "schedule");
    assert_true(json_is_array(schedule));
    for (size_t i = 0; i < json_array_size(schedule); i++) {
        const json_t *step = json_array_get(schedule, i);
        const char *op = json_string_value(json_object_get(step, "op"));
        const char *save = json_string_value(json_object_get(step, "save"));
        const char *what = json_string_value(json_object_get(step, "what"));
        size_t layer = (size_t)json_integer_value(json_object_get(step, "layer"));
        assert_non_null(op);
        if (strcmp(op, "forward") == 0)
            step_list_add(steps, REMAT_FORWARD, layer,
                          save ? mode_number(remat_profile_layer(profile, layer), save) : REMAT_NO_SAVE);
        else if (strcmp(op, "loss") == 0)
            step_list_add(steps, REMAT_LOSS, 0, REMAT_NO_SAVE);
        else if (strcmp(op, "backward") == 0)
            step_list_add(steps, REMAT_BACKWARD, layer, REMAT_NO_SAVE);
        else {
            assert_string_equal(op, "drop");
            step_list_add(steps, strcmp(what, "x") == 0 ? REMAT_DROP_X : REMAT_DROP_STATE, layer, REMAT_NO_SAVE);
        }
    }
}

static json_t *step_tree(const remat_profile *profile, remat_step step)
{
    static const char *const ops[] = {"forward", "loss", "backward", "drop", "drop"};
    json_t *tree = json_pack("{s:s}", "op", ops[step.op]);
    if (step.op != REMAT_LOSS)
        json_object_set_new(tree, "layer", json_integer(step.layer));
    if (step.op == REMAT_DROP_X || step.op == REMAT_DROP_STATE)
        json_object_set_new(tree, "what", json_string(step.op == REMAT_DROP_X ? "x" : "s"));
    if (step.save != REMAT_NO_SAVE)
        json_object_set_new(tree, "save", json_string(remat_profile_layer(profile, step.layer)->modes[step.save].name));
    return tree;
}

json_t *plan_tree_of_steps(const remat_profile *profile, const step_list *steps)
{
    json_t *schedule = json_array();
    for (size_t i = 0; i < steps->count; i++)
        json_array_append_new(schedule, step_tree(profile, steps->steps[i]));
    return json_pack("{s:s, s:i, s:o}", "format", "remat-plan", "version", 1, "schedule", schedule);
}

json_t *bare_plan(const json_t *tree)
{
    return json_pack("{s:s, s:i, s:o}", "format", "remat-plan", "version", 1, "schedule",
                     json_deep_copy(json_object_get(tree, "schedule")));
}

remat_status check_plan_tree(fixture *f, const json_t *tree, const remat_profile *profile, remat_figures *figures)
{
    char *text = json_dumps(tree, JSON_INDENT(1));
    assert_non_null(text);
    remat_status status = check_plan_text(f, text, profile, figures);
    free(text);
    return status;
}
