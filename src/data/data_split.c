#include "data/data_split.h"

#include "base/alloc.h"
#include "base/sort.h"
#include "data/permutation.h"

#include <math.h>

/* More classes are not counted one by one. */
enum { MOST_CLASSES = 1 << 24 };

/* Streams of the split; those of shuffling in an epoch have the epoch's number. */
#define SPLIT_EPOCH UINT64_C(0xFFFFFFFF00000000)

/* Whether a sample has one class, and classes can be counted. */
static bool has_classes(const data_set *set)
{
    const data_field *labels = &set->needs->labels;
    return set->read_class && labels->values == 1 && data_field_is_integer(labels) && labels->bound > 0 &&
           labels->bound < MOST_CLASSES;
}

/* The group of a sample: its class, or one more group for labels that count nothing. */
static remat_status group_of(data_set *set, uint64_t sample, uint64_t *group)
{
    int32_t id = 0;
    REMAT_TRY(set->read_class(set, sample, &id));
    *group = id >= 0 && (uint64_t)id < set->needs->labels.bound ? (uint64_t)id : set->needs->labels.bound;
    return REMAT_OK;
}

/* ---- by class ---- */

typedef struct class_group {
    uint64_t samples, held_out, seen;
    double fraction; /* of a sample that the share asks for beyond held_out */
    permutation order;
} class_group;

static bool larger_fraction(const void *user, uint32_t a, uint32_t b)
{
    const class_group *groups = user;
    return groups[a].fraction > groups[b].fraction;
}

/* Each class gives the same share, rounded down; the samples that are missing then come from the classes with the
 * largest rest. */
static remat_status share_out(remat_context *context, class_group *groups, size_t count, double share, uint64_t wanted)
{
    for (size_t i = 0; i < count; i++) {
        double exact = (double)groups[i].samples * share;
        groups[i].held_out = (uint64_t)floor(exact);
        groups[i].fraction = exact - floor(exact);
        wanted -= groups[i].held_out < wanted ? groups[i].held_out : wanted;
    }
    uint32_t *order;
    REMAT_TRY(remat_order(context, count, larger_fraction, groups, &order));
    for (size_t i = 0; i < count && wanted; i++)
        if (groups[order[i]].held_out < groups[order[i]].samples) {
            groups[order[i]].held_out++;
            wanted--;
        }
    remat_release(context, order, count, sizeof *order);
    return REMAT_OK;
}

static remat_status fill_by_class(data_set *set, class_group *groups, size_t count, double share, uint64_t seed,
                                  data_split *split)
{
    uint64_t group = 0;
    for (uint64_t s = 0; s < split->samples; s++) {
        REMAT_TRY(group_of(set, s, &group));
        groups[group].samples++;
    }
    REMAT_TRY(share_out(set->context, groups, count, share, split->samples - split->training));
    uint64_t held_out = 0, training = 0;
    for (size_t i = 0; i < count; i++) {
        held_out += groups[i].held_out;
        groups[i].order = permutation_make(groups[i].samples ? groups[i].samples : 1, seed, SPLIT_EPOCH + 1 + i);
    }
    split->training = split->samples - held_out;
    held_out = split->training;
    for (uint64_t s = 0; s < split->samples; s++) {
        REMAT_TRY(group_of(set, s, &group));
        class_group *own = &groups[group];
        bool is_held_out = permutation_at(&own->order, own->seen++) < own->held_out;
        split->order[is_held_out ? held_out++ : training++] = (uint32_t)s;
    }
    return REMAT_OK;
}

static remat_status split_by_class(data_set *set, double share, uint64_t seed, data_split *split)
{
    size_t count = (size_t)set->needs->labels.bound + 1;
    class_group *groups = remat_alloc_zeroed(set->context, count, sizeof *groups);
    if (!groups)
        return REMAT_NO_MEMORY;
    remat_status status = fill_by_class(set, groups, count, share, seed, split);
    remat_release(set->context, groups, count, sizeof *groups);
    return status;
}

/* ---- all together ---- */

static void split_shuffled(uint64_t seed, data_split *split)
{
    permutation order = permutation_make(split->samples, seed, SPLIT_EPOCH);
    uint64_t held_out = split->training, training = 0;
    for (uint64_t s = 0; s < split->samples; s++) {
        bool is_training = permutation_at(&order, s) < split->training;
        split->order[is_training ? training++ : held_out++] = (uint32_t)s;
    }
}

remat_status data_split_make(data_set *set, double share, uint32_t how, uint64_t seed, data_split *split)
{
    uint64_t held_out = (uint64_t)llround((double)set->samples * share);
    held_out = held_out < set->samples ? held_out : set->samples;
    *split = (data_split){set->samples, set->samples - held_out, NULL};
    if (how == SPLIT_AUTO)
        how = set->in_file_order ? SPLIT_LAST : SPLIT_STRATIFIED;
    if (how == SPLIT_STRATIFIED && !has_classes(set))
        how = SPLIT_SHUFFLED;
    if (how == SPLIT_LAST || held_out == 0 || set->samples > UINT32_MAX)
        return REMAT_OK;
    split->order = remat_alloc(set->context, set->samples, sizeof *split->order);
    if (!split->order)
        return REMAT_NO_MEMORY;
    if (how == SPLIT_STRATIFIED)
        return split_by_class(set, share, seed, split);
    split_shuffled(seed, split);
    return REMAT_OK;
}

void data_split_end(data_split *split, remat_context *context)
{
    remat_release(context, split->order, split->samples, sizeof *split->order);
    *split = (data_split){0};
}

uint64_t data_split_sample(const data_split *split, data_part part, uint64_t sample)
{
    uint64_t place = part == DATA_VALIDATION ? split->training + sample : sample;
    return split->order ? split->order[place] : place;
}

/* ---- classes on one side ---- */

static remat_status count_classes(data_set *set, const data_split *split, data_part part, uint64_t samples,
                                  uint64_t *counts)
{
    for (uint64_t i = 0; i < samples; i++) {
        uint64_t group = 0;
        REMAT_TRY(group_of(set, split ? data_split_sample(split, part, i) : i, &group));
        counts[group]++;
    }
    return REMAT_OK;
}

static void warn_of_side(remat_context *context, const uint64_t *here, const uint64_t *there, uint64_t classes,
                         const name_list *names, const char *side, const char *other)
{
    uint64_t alone = 0, first = 0;
    for (uint64_t c = classes; c-- > 0;)
        if (here[c] && !there[c]) {
            alone++;
            first = c;
        }
    if (!alone)
        return;
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)first);
    remat_warn(context, NULL, "%llu %s in the %s data and not in the %s data%s '%.60s', with %llu sample%s",
               (unsigned long long)alone, alone == 1 ? "class is" : "classes are", side, other,
               alone == 1 ? ":" : "; the first is", first < names->count ? names->names[first] : number,
               (unsigned long long)here[first], here[first] == 1 ? "" : "s");
}

remat_status data_split_warn(data_set *training, data_set *validation, const data_split *split, const name_list *names)
{
    if (!has_classes(training) || !has_classes(validation))
        return REMAT_OK;
    remat_context *context = training->context;
    size_t groups = (size_t)training->needs->labels.bound + 1;
    uint64_t *counts = remat_alloc_zeroed(context, 2 * groups, sizeof *counts);
    if (!counts)
        return REMAT_NO_MEMORY;
    bool same = training == validation;
    remat_status status = count_classes(training, split, DATA_TRAINING, split->training, counts);
    if (status == REMAT_OK)
        status = count_classes(validation, same ? split : NULL, DATA_VALIDATION,
                               same ? split->samples - split->training : validation->samples, counts + groups);
    if (status == REMAT_OK) {
        warn_of_side(context, counts, counts + groups, groups - 1, names, "training", "validation");
        warn_of_side(context, counts + groups, counts, groups - 1, names, "validation", "training");
    }
    remat_release(context, counts, 2 * groups, sizeof *counts);
    return status;
}
