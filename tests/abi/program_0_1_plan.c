/* Profiles, schedules, plans, sweeps and arenas. */
#include "program_0_1.h"

/* ---- profiles ---- */

static void add_layer_with_mode(remat_context *context, remat_profile *profile, uint64_t bytes)
{
    GUARDED(remat_layer_options, layer);
    remat_layer_options_init(layer);
    INTACT(layer);
    CHECK(layer->struct_size == sizeof *layer && layer->index == REMAT_DEFAULT && layer->mode_count == 0);
    struct {
        remat_mode_options modes[2]; /* an array: the library must know how far apart they are */
        unsigned char guard[GUARD_BYTES];
    } room;
    memset(&room, 0xa5, sizeof room);
    for (int i = 0; i < 2; i++) {
        remat_mode_options_init(&room.modes[i]);
        CHECK(room.modes[i].struct_size == sizeof room.modes[i] && room.modes[i].lossless);
        room.modes[i].name = i ? "quarter" : "half";
        room.modes[i].activation_bytes = bytes / (i ? 4 : 2);
        room.modes[i].backward_cost = 500;
        room.modes[i].holds_output = false;
        room.modes[i].lossless = !i;
    }
    CHECK(guard_is_intact(room.guard));
    layer->name = "attention";
    layer->type = REMAT_ATTENTION;
    layer->activation_bytes = bytes;
    layer->output_bytes = bytes / 4;
    layer->recompute_flops = 300;
    layer->modes = room.modes;
    layer->mode_count = 2;
    OK(context, remat_profile_add_layer(profile, layer));
}

remat_profile *made_profile(remat_context *context)
{
    remat_profile *profile;
    OK(context, remat_profile_create(context, &profile));
    for (uint64_t i = 0; i < 8; i++)
        if (i % 3 == 0)
            add_layer_with_mode(context, profile, 4096 + 512 * i);
        else
            OK(context, remat_profile_add(profile, REMAT_FFN, 1024 + 64 * i, 200 + i));
    OK(context, remat_profile_set_name(profile, "chain of eight"));
    OK(context, remat_profile_set_cost_unit(profile, "ns"));
    OK(context, remat_profile_set_input_bytes(profile, 512));
    OK(context, remat_profile_set_input_gradient_bytes(profile, 256));
    OK(context, remat_profile_set_loss_workspace_bytes(profile, 128));
    return profile;
}

static void check_profile(const remat_profile *profile)
{
    CHECK(strcmp(remat_profile_name(profile), "chain of eight") == 0);
    CHECK(strcmp(remat_profile_cost_unit(profile), "ns") == 0);
    CHECK(remat_profile_input_bytes(profile) == 512 && remat_profile_input_gradient_bytes(profile) == 256);
    CHECK(remat_profile_loss_workspace_bytes(profile) == 128 && remat_profile_layer_count(profile) == 8);
    CHECK(remat_profile_layer(profile, 8) == NULL);
    const remat_layer *layer = remat_profile_layer(profile, 3);
    CHECK(strcmp(layer->name, "attention") == 0 && layer->index == 3 && layer->mode_count == 3);
    CHECK(layer->modes[0].activation_bytes == 5632 && strcmp(layer->modes[2].name, "quarter") == 0);
    CHECK(layer->modes[1].activation_bytes == 2816 && layer->modes[2].activation_bytes == 1408);
    CHECK(!layer->modes[1].holds_output && layer->modes[1].lossless && !layer->modes[2].lossless);
    CHECK(layer->recompute_flops == 300 && layer->output_bytes == 1408);
    CHECK(strcmp(remat_layer_type_name(layer->type), "attention") == 0);
    CHECK(remat_layer_cost_ratio(layer) > 0.05 && remat_layer_cost_ratio(layer) < 0.06);
}

void use_profiles(remat_context *context)
{
    remat_profile *profile = made_profile(context), *again;
    check_profile(profile);
    OK(context, remat_profile_save(profile, scratch_path("profile.json")));
    OK(context, remat_profile_load(context, scratch_path("profile.json"), &again));
    check_profile(again);
    remat_profile_destroy(again);
    FILE *stream = tmpfile();
    CHECK(stream != NULL);
    OK(context, remat_profile_write(profile, stream));
    rewind(stream);
    OK(context, remat_profile_read(context, stream, "written", &again));
    check_profile(again);
    fclose(stream);
    remat_profile_destroy(again);
    stream = tmpfile(); /* an unknown key is a warning */
    fputs("{\"format\": \"remat-profile\", \"version\": 1, \"colour\": 1, \"layers\": []}", stream);
    rewind(stream);
    OK(context, remat_profile_read(context, stream, "odd", &again));
    fclose(stream);
    remat_profile_destroy(again);
    FAILS(context, remat_profile_load(context, "/nowhere/at.all", &again), REMAT_IO);
    CHECK(strcmp(remat_context_error(context)->file, "/nowhere/at.all") == 0);
    remat_profile_destroy(profile);
}

/* ---- plans ---- */

static remat_status play(void *simulator, remat_step step)
{
    return remat_simulator_step(simulator, step);
}

static remat_status count_step(void *user, remat_step step)
{
    (void)step;
    ++*(uint64_t *)user;
    return REMAT_OK;
}

static void add_live(void *user, remat_live_tensor tensor)
{
    CHECK(strchr("xsy", tensor.kind) != NULL && tensor.layer <= 8);
    *(uint64_t *)user += tensor.bytes;
}

static void simulate(remat_context *context, const remat_profile *profile, const remat_plan *plan)
{
    remat_simulator *simulator;
    uint64_t live = 0;
    char text[REMAT_STEP_TEXT];
    OK(context, remat_simulator_create(context, profile, &simulator));
    const remat_step first = {0, REMAT_KEEP, REMAT_FORWARD};
    printf("%s; ", remat_step_print(profile, first, text));
    OK(context, remat_simulator_step(simulator, first));
    remat_simulator_live(simulator, add_live, &live);
    CHECK(live == remat_simulator_live_bytes(simulator) && live == 512 + 4096);
    remat_simulator_destroy(simulator);
    OK(context, remat_simulator_create(context, profile, &simulator));
    OK(context, remat_plan_walk(plan, play, simulator));
    GUARDED(remat_figures, figures);
    OK(context, remat_simulator_finish(simulator, figures));
    INTACT(figures);
    const remat_figures *stated = &remat_plan_get_figures(plan)->schedule;
    CHECK(memcmp(figures, stated, sizeof *stated) == 0 && figures->steps > 16);
    for (size_t i = 0; i < 8; i++) {
        CHECK(remat_simulator_forwards(simulator, i) == remat_plan_forwards(plan, i));
        CHECK(remat_simulator_decision(simulator, i) == remat_plan_decision(plan, i));
        printf("%s ", remat_plan_decision_name(plan, i));
    }
    printf("\n");
    remat_simulator_destroy(simulator);
}

static void check_statistics(const remat_plan *plan)
{
    GUARDED(remat_plan_statistics, statistics);
    remat_plan_get_statistics(plan, statistics);
    INTACT(statistics);
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    CHECK(statistics->layers == 8 && statistics->recomputed_layers == figures->schedule.recomputed_layers);
    CHECK(statistics->estimated_bytes == figures->estimated_bytes && statistics->peak_reduction_bytes > 0);
    printf("%.6f %.6f %.6f\n", statistics->mean_activation_bytes, statistics->recomputed_percent,
           statistics->peak_reduction_percent);
}

static void check_plan_files(remat_context *context, const remat_profile *profile, const remat_plan *plan)
{
    remat_plan *again;
    FILE *stream = tmpfile();
    OK(context, remat_plan_write(plan, stream, true));
    rewind(stream);
    GUARDED(remat_figures, figures);
    OK(context, remat_plan_check(context, stream, "plan", profile, figures));
    INTACT(figures);
    CHECK(figures->peak_bytes == remat_plan_get_figures(plan)->schedule.peak_bytes);
    rewind(stream);
    OK(context, remat_plan_read(context, stream, "plan", profile, &again));
    fclose(stream);
    CHECK(remat_plan_get_figures(again)->schedule.total_cost == remat_plan_get_figures(plan)->schedule.total_cost);
    remat_plan_destroy(again);
    OK(context, remat_plan_save(plan, scratch_path("plan.json")));
    OK(context, remat_plan_load(context, scratch_path("plan.json"), profile, &again));
    CHECK(strcmp(remat_plan_strategy(again), remat_plan_strategy(plan)) == 0);
    remat_plan_destroy(again);
}

static void sweep(remat_context *context, const remat_profile *profile, const remat_plan_options *options)
{
    remat_sweep *curve;
    OK(context, remat_sweep_create(context, profile, options, &curve));
    size_t count = remat_sweep_count(curve), knee = remat_sweep_knee(curve);
    CHECK(count > 2 && knee < count && remat_sweep_method(curve)[0]);
    for (size_t i = 0; i < count; i++) {
        remat_sweep_point point = remat_sweep_get(curve, i);
        remat_plan *plan;
        OK(context, remat_sweep_plan(curve, i, &plan));
        CHECK(remat_plan_get_figures(plan)->schedule.peak_bytes <= point.peak_bytes);
        CHECK(remat_plan_get_figures(plan)->schedule.total_cost == point.total_cost);
        printf("(%llu %llu)", (unsigned long long)point.peak_bytes, (unsigned long long)point.total_cost);
        remat_plan_destroy(plan);
    }
    CHECK(remat_sweep_get(curve, count).peak_bytes == 0);
    printf(" %zu\n", knee);
    remat_sweep_destroy(curve);
}

static void use_revolve(remat_context *context)
{
    uint64_t steps = 0;
    CHECK(remat_revolve_forwards(10, 3) == 15);
    OK(context, remat_revolve_walk(context, 10, 3, count_step, &steps));
    CHECK(steps > 20);
    remat_online *online;
    OK(context, remat_online_create(context, 3, &online));
    for (int i = 0; i < 10; i++)
        OK(context, remat_online_advance(online, count_step, &steps));
    OK(context, remat_online_reverse(online, count_step, &steps));
    remat_online_destroy(online);
    printf("%llu\n", (unsigned long long)steps);
}

void use_plans(remat_context *context)
{
    remat_profile *profile = made_profile(context);
    remat_plan *plan, *refused;
    GUARDED(remat_plan_options, options);
    remat_plan_options_init(options);
    INTACT(options);
    CHECK(options->struct_size == sizeof *options && options->budget_bytes == REMAT_NO_BUDGET);
    CHECK(!options->strategy && !options->method && options->count == REMAT_COUNT_PEAK);
    options->threads = 1;
    options->budget_bytes = 14000;
    OK(context, remat_plan_create(context, profile, options, &plan));
    const remat_plan_figures *figures = remat_plan_get_figures(plan);
    CHECK(figures->feasible && figures->has_budget && figures->budget_bytes == 14000);
    CHECK(figures->schedule.peak_bytes <= 14000 && figures->base_peak_bytes > 14000);
    printf("%s %s '%s' %llu %llu %llu %llu\n", remat_plan_strategy(plan), remat_plan_method(plan),
           remat_plan_remark(plan), (unsigned long long)figures->min_budget_bytes,
           (unsigned long long)figures->schedule.peak_bytes, (unsigned long long)figures->schedule.total_cost,
           (unsigned long long)figures->lower_bound_cost);
    uint64_t live = 0;
    OK(context, remat_plan_peak_live(plan, add_live, &live));
    CHECK(live > 0 && live <= figures->schedule.peak_bytes);
    simulate(context, profile, plan);
    check_statistics(plan);
    check_plan_files(context, profile, plan);
    sweep(context, profile, options);
    options->budget_bytes = figures->min_budget_bytes - 1;
    FAILS(context, remat_plan_create(context, profile, options, &refused), REMAT_INFEASIBLE);
    CHECK(refused && remat_plan_get_figures(refused)->min_budget_bytes == figures->min_budget_bytes);
    remat_plan_destroy(refused);
    remat_plan_destroy(plan);
    size_t strategies = 0;
    while (remat_strategy_list(strategies))
        CHECK(remat_strategy_list(strategies++)->name[0]);
    CHECK(strategies >= 11);
    use_revolve(context);
    remat_profile_destroy(profile);
}

/* ---- arenas ---- */

static void check_table(remat_context *context, const remat_arena_options *options)
{
    FILE *stream = tmpfile(), *out = tmpfile();
    fputs("id,lower,upper,size\na,0,4,10\nb,2,6,5\nc,5,9,10\n", stream);
    rewind(stream);
    remat_lifetime_table *table;
    OK(context, remat_lifetime_table_read(context, stream, "table", &table));
    fclose(stream);
    CHECK(remat_lifetime_table_count(table) == 3 && strcmp(remat_lifetime_table_id(table, 2), "c") == 0);
    remat_lifetime *rows = remat_lifetime_table_rows(table);
    CHECK(rows[1].lower == 2 && rows[2].upper == 9 && rows[2].size == 10);
    GUARDED(remat_arena_result, result);
    OK(context, remat_arena_place(context, rows, 3, options, result));
    INTACT(result);
    OK(context, remat_lifetime_table_write(table, out));
    OK(context, remat_lifetime_table_write_json(table, options, result, true, out));
    rewind(out);
    for (int c; (c = getc(out)) != EOF;)
        putchar(c);
    fclose(out);
    remat_lifetime_table_destroy(table);
}

void use_arenas(remat_context *context)
{
    GUARDED(remat_arena_options, options);
    remat_arena_options_init(options);
    INTACT(options);
    CHECK(options->struct_size == sizeof *options && options->alignment == 1 && options->capacity == 0);
    struct {
        remat_lifetime tensors[3];
        unsigned char guard[GUARD_BYTES];
    } room = {{{0, 4, 10, 99}, {2, 6, 5, 99}, {5, 9, 10, 99}}, {0}};
    memset(room.guard, 0xa5, sizeof room.guard);
    GUARDED(remat_arena_result, result);
    OK(context, remat_arena_place(context, room.tensors, 3, options, result));
    INTACT(result);
    CHECK(guard_is_intact(room.guard));
    CHECK(result->height == 15 && result->lower_bound == 15);
    OK(context, remat_arena_check(context, room.tensors, 3, 1, 15));
    room.tensors[1].offset = room.tensors[0].offset;
    FAILS(context, remat_arena_check(context, room.tensors, 3, 1, 15), REMAT_CHECK_FAILED);
    options->capacity = 14;
    FAILS(context, remat_arena_place(context, room.tensors, 3, options, result), REMAT_INFEASIBLE);
    INTACT(result);
    CHECK(result->height == 15);
    options->capacity = 0;
    check_table(context, options);
}
