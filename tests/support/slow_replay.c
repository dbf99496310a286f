#include "support/slow_replay.h"

#include "support/cases.h"

/* ---- lists of steps ---- */

void step_list_add(step_list *list, remat_op op, size_t layer, uint16_t save)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 64;
        list->steps = realloc(list->steps, list->capacity * sizeof *list->steps);
        assert_non_null(list->steps);
    }
    list->steps[list->count++] = (remat_step){(uint32_t)layer, save, (uint8_t)op};
}

void step_list_clear(step_list *list)
{
    free(list->steps);
    *list = (step_list){0};
}

remat_status step_list_take(void *user, remat_step step)
{
    step_list_add(user, (remat_op)step.op, step.layer, step.save);
    return REMAT_OK;
}

/* ---- the state ---- */

static void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    assert_non_null(memory);
    return memory;
}

slow_replay *slow_replay_start(const remat_profile *profile)
{
    slow_replay *replay = zeroed(1, sizeof *replay);
    size_t n = remat_profile_layer_count(profile);
    replay->profile = profile;
    replay->n = n;
    replay->x = zeroed(n + 1, sizeof *replay->x);
    replay->y = zeroed(n + 1, sizeof *replay->y);
    replay->s = zeroed(n, sizeof *replay->s);
    replay->s_mode = zeroed(n, sizeof *replay->s_mode);
    replay->s_by_first = zeroed(n, sizeof *replay->s_by_first);
    replay->forwards = zeroed(n, sizeof *replay->forwards);
    replay->decisions = zeroed(n, sizeof *replay->decisions);
    replay->went_backward = zeroed(n, sizeof *replay->went_backward);
    replay->x[0] = true; /* the input is live from the start */
    replay->peak = remat_profile_input_bytes(profile);
    replay->peak_step = REMAT_NOWHERE;
    return replay;
}

void slow_replay_end(slow_replay *replay)
{
    if (!replay)
        return;
    free(replay->x);
    free(replay->y);
    free(replay->s);
    free(replay->s_mode);
    free(replay->s_by_first);
    free(replay->forwards);
    free(replay->decisions);
    free(replay->went_backward);
    free(replay);
}

static const remat_layer *layer_of(const slow_replay *replay, size_t i)
{
    return remat_profile_layer(replay->profile, i);
}

static uint64_t x_bytes(const slow_replay *replay, size_t i)
{
    return i == 0 ? remat_profile_input_bytes(replay->profile) : layer_of(replay, i - 1)->output_bytes;
}

static uint64_t y_bytes(const slow_replay *replay, size_t i)
{
    return i == 0 ? remat_profile_input_gradient_bytes(replay->profile) : layer_of(replay, i - 1)->output_bytes;
}

uint64_t slow_replay_live(const slow_replay *replay)
{
    uint64_t sum = 0;
    for (size_t i = 0; i <= replay->n; i++) {
        sum += replay->x[i] ? x_bytes(replay, i) : 0;
        sum += replay->y[i] ? y_bytes(replay, i) : 0;
        if (i < replay->n && replay->s[i])
            sum += layer_of(replay, i)->modes[replay->s_mode[i]].activation_bytes;
    }
    return sum;
}

bool slow_replay_readable(const slow_replay *replay, size_t i)
{
    if (replay->x[i])
        return true;
    return i > 0 && replay->s[i - 1] && layer_of(replay, i - 1)->modes[replay->s_mode[i - 1]].holds_output;
}

/* ---- the table of steps ---- */

static bool makes_plain_output(const slow_replay *replay, remat_step step)
{
    return step.save == REMAT_NO_SAVE || !layer_of(replay, step.layer)->modes[step.save].holds_output;
}

static bool allows_forward(const slow_replay *replay, remat_step step)
{
    size_t i = step.layer;
    if (i >= replay->n || !slow_replay_readable(replay, i))
        return false;
    if (step.save != REMAT_NO_SAVE && (step.save >= layer_of(replay, i)->mode_count || replay->s[i]))
        return false;
    return !(makes_plain_output(replay, step) && replay->x[i + 1]);
}

bool slow_replay_allows(const slow_replay *replay, remat_step step)
{
    size_t i = step.layer;
    switch ((remat_op)step.op) {
    case REMAT_FORWARD: return allows_forward(replay, step);
    case REMAT_LOSS: /* a chain without layers has an empty schedule */
        return replay->n > 0 && replay->losses == 0 && slow_replay_readable(replay, replay->n);
    case REMAT_BACKWARD:
        return i < replay->n && replay->y[i + 1] && replay->s[i] && slow_replay_readable(replay, i) && !replay->y[i];
    case REMAT_DROP_X: return i <= replay->n && replay->x[i];
    case REMAT_DROP_STATE: return i < replay->n && replay->s[i];
    }
    return false;
}

static void reach(slow_replay *replay, uint64_t bytes)
{
    if (bytes > replay->peak) {
        replay->peak = bytes;
        replay->peak_step = replay->steps;
    }
}

static void play_forward(slow_replay *replay, remat_step step)
{
    size_t i = step.layer;
    const remat_mode *mode = &layer_of(replay, i)->modes[step.save == REMAT_NO_SAVE ? REMAT_KEEP : step.save];
    bool plain = makes_plain_output(replay, step), saves = step.save != REMAT_NO_SAVE;
    uint64_t added = (saves ? mode->activation_bytes : 0) + (plain ? x_bytes(replay, i + 1) : 0);
    reach(replay, slow_replay_live(replay) + added + mode->forward_workspace_bytes);
    replay->cost += mode->forward_cost;
    replay->forwards[i]++;
    if (plain)
        replay->x[i + 1] = true;
    if (saves) {
        replay->s[i] = true;
        replay->s_mode[i] = step.save;
        replay->s_by_first[i] = replay->forwards[i] == 1;
    }
}

static void play_loss(slow_replay *replay)
{
    uint64_t workspace = remat_profile_loss_workspace_bytes(replay->profile);
    reach(replay, slow_replay_live(replay) + y_bytes(replay, replay->n) + workspace);
    replay->y[replay->n] = true;
    replay->losses++;
}

static void play_backward(slow_replay *replay, size_t i)
{
    const remat_mode *mode = &layer_of(replay, i)->modes[replay->s_mode[i]];
    reach(replay, slow_replay_live(replay) + y_bytes(replay, i) + mode->backward_workspace_bytes);
    replay->cost += mode->backward_cost;
    replay->y[i] = true;
    replay->y[i + 1] = false;
    replay->s[i] = false;
    replay->went_backward[i] = true;
    replay->decisions[i] = replay->s_by_first[i] ? replay->s_mode[i] : REMAT_NO_SAVE;
}

bool slow_replay_step(slow_replay *replay, remat_step step)
{
    if (!slow_replay_allows(replay, step))
        return false;
    switch ((remat_op)step.op) {
    case REMAT_FORWARD: play_forward(replay, step); break;
    case REMAT_LOSS: play_loss(replay); break;
    case REMAT_BACKWARD: play_backward(replay, step.layer); break;
    case REMAT_DROP_X: replay->x[step.layer] = false; break;
    case REMAT_DROP_STATE: replay->s[step.layer] = false; break;
    }
    replay->steps++;
    return true;
}

/* ---- the end ---- */

bool slow_replay_complete(const slow_replay *replay)
{
    for (size_t i = 0; i < replay->n; i++)
        if (!replay->went_backward[i])
            return false;
    return true;
}

slow_figures slow_replay_figures(const slow_replay *replay)
{
    slow_figures figures = {.legal = slow_replay_complete(replay),
                            .illegal_step = replay->steps,
                            .peak = replay->peak,
                            .peak_step = replay->peak_step,
                            .cost = replay->cost};
    for (size_t i = 0; figures.legal && i < replay->n; i++) {
        const remat_layer *layer = layer_of(replay, i);
        uint64_t all = layer->modes[REMAT_KEEP].activation_bytes;
        figures.recompute_flops += (replay->forwards[i] - 1) * layer->recompute_flops;
        if (replay->decisions[i] != REMAT_NO_SAVE) {
            const uint64_t kept = layer->modes[replay->decisions[i]].activation_bytes;
            figures.kept_bytes += kept;
            figures.recomputed_layers += kept == 0 && all > 0;
            continue;
        }
        figures.recomputed_layers++;
        figures.largest_recomputed = all > figures.largest_recomputed ? all : figures.largest_recomputed;
    }
    return figures;
}

slow_figures slow_replay_all(const remat_profile *profile, const remat_step *steps, size_t count)
{
    slow_replay *replay = slow_replay_start(profile);
    size_t played = 0;
    while (played < count && slow_replay_step(replay, steps[played]))
        played++;
    slow_figures figures = slow_replay_figures(replay);
    figures.legal = figures.legal && played == count;
    figures.illegal_step = played;
    slow_replay_end(replay);
    return figures;
}
