#include "graph/stated_figures.h"

remat_status stated_figures_check(remat_context *context, remat_place place, const stated_figures *stated,
                                  const stated_rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const stated_rule *rule = &rules[i];
        const uint64_t number = stated->numbers[rule->which];
        place.field = stated->names[rule->which];
        if (stated->seen >> rule->which & 1 && ((number > rule->found && rule->relation != STATED_AT_LEAST) ||
                                                (number < rule->found && rule->relation != STATED_AT_MOST)))
            return remat_fail(context, REMAT_CHECK_FAILED, &place, "%llu is stated, %s %llu",
                              (unsigned long long)number, rule->words, (unsigned long long)rule->found);
    }
    return REMAT_OK;
}
