#include "plan/chain/strategy.h"

#include "base/share.h"

#include <stdlib.h>
#include <string.h>

static const strategy_entry table[] = {
    {{"none", "", "keep everything", false}, ARGUMENT_NONE, plan_draft_marks},
    {{"full", "[:K]", "recompute everything, in blocks of K layers (default 1)", false},
     ARGUMENT_OPTIONAL_COUNT,
     strategy_full},
    {{"selective", ":RATIO", "recompute this share of the layers, spread evenly", false},
     ARGUMENT_RATIO,
     strategy_selective},
    {{"attention-only", "", "recompute the layers of type attention", false}, ARGUMENT_NONE, strategy_attention_only},
    {{"ffn-only", "", "recompute the layers of type ffn", false}, ARGUMENT_NONE, strategy_ffn_only},
    {{"every-nth", ":N", "recompute the first of every N layers", false}, ARGUMENT_COUNT, strategy_every_nth},
    {{"largest", ":K", "recompute the K layers with the largest activations", false}, ARGUMENT_COUNT, strategy_largest},
    {{"budget", "", "recompute most bytes per flop until the peak fits", true}, ARGUMENT_NONE, strategy_budget},
    {{"sqrt", "", "recompute all in sqrt(N) blocks (Chen et al.)", false}, ARGUMENT_NONE, strategy_sqrt},
    {{"revolve", ":SLOTS", "hold SLOTS states; best for equal layers", false}, ARGUMENT_COUNT, strategy_revolve},
    {{"online", ":SLOTS", "as revolve, for a length not known in advance", false}, ARGUMENT_COUNT, strategy_online},
    {{"optimal", "", "the cheapest schedule within the budget", false}, ARGUMENT_NONE, strategy_optimal},
};

enum { STRATEGY_COUNT = sizeof table / sizeof table[0], LONGEST_TEXT = 127 /* what a plan file can say */ };

const remat_strategy_info *remat_strategy_list(size_t position)
{
    return position < STRATEGY_COUNT ? &table[position].info : NULL;
}

static remat_status read_argument(plan_request *request, const strategy_entry *found, const char *text,
                                  const char *argument)
{
    remat_context *context = request->context;
    const char *name = found->info.name;
    request->count = 1;
    if (found->argument == ARGUMENT_NONE && argument)
        return remat_fail(context, REMAT_INVALID, NULL, "strategy '%s' takes no argument; write '%s'", text, name);
    if (!argument && (found->argument == ARGUMENT_NONE || found->argument == ARGUMENT_OPTIONAL_COUNT))
        return REMAT_OK;
    if (!argument)
        return remat_fail(context, REMAT_INVALID, NULL, "strategy '%s' needs an argument; write '%s%s'", name, name,
                          found->info.argument);
    if (found->argument == ARGUMENT_RATIO) {
        if (!remat_share_parse(argument, &request->count))
            return remat_fail(context, REMAT_INVALID, NULL, "'%s' is not a number from 0 to 1; write '%s:0.5'",
                              argument, name);
        return REMAT_OK;
    }
    if (remat_count_parse(context, argument, &request->count) != REMAT_OK)
        return remat_fail(context, REMAT_INVALID, NULL, "'%s' is not a count; write '%s:2'", argument, name);
    return REMAT_OK;
}

remat_status remat_strategy_parse(plan_request *request, const char *text, const strategy_entry **found)
{
    size_t length = strcspn(text, ":");
    if (strlen(text) > LONGEST_TEXT)
        return remat_fail(request->context, REMAT_INVALID, NULL, "a strategy is written in at most %d characters",
                          LONGEST_TEXT);
    for (size_t i = 0; i < STRATEGY_COUNT; i++)
        if (strlen(table[i].info.name) == length && memcmp(table[i].info.name, text, length) == 0) {
            *found = &table[i];
            return read_argument(request, &table[i], text, text[length] ? text + length + 1 : NULL);
        }
    char names[256] = "";
    for (size_t i = 0; i < STRATEGY_COUNT; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s%s", table[i].info.name,
                 table[i].info.argument);
    return remat_fail(request->context, REMAT_INVALID, NULL, "there is no strategy '%.60s'; use one of%s", text, names);
}
