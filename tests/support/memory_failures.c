#include "support/memory_failures.h"

#include "base/alloc.h"

static remat_status run_failing(const char *name, memory_flow flow, void *user, uint64_t n, bool reserve, bool *reached)
{
    failing_allocator memory = {.fail_at = 0};
    remat_allocator hook = failing_allocator_hook(&memory);
    remat_context *context;
    assert_int_equal(remat_context_create(&hook, &context), REMAT_OK);
    if (!reserve)
        remat_alloc_take_no_reserve(context);
    memory.fail_at = memory.calls + n;
    remat_status status = flow(context, user);
    *reached = memory.calls >= memory.fail_at;
    memory.fail_at = 0;
    if (remat_context_bytes(context) != 0)
        fail_msg("%s: allocation %llu failed and %llu bytes were lost", name, (unsigned long long)n,
                 (unsigned long long)remat_context_bytes(context));
    if (*reached && status != REMAT_NO_MEMORY)
        fail_msg("%s: allocation %llu failed with status %d: %s", name, (unsigned long long)n, status,
                 remat_context_message(context));
    if (*reached) {
        expect_text(remat_context_message(context), "out of memory");
        /* Once more, now that there is memory; not each time, because that is most of the work. */
        if (n % 4 == 1 && flow(context, user) != REMAT_OK)
            fail_msg("%s: after allocation %llu failed: %s", name, (unsigned long long)n,
                     remat_context_message(context));
        assert_int_equal(remat_context_bytes(context), 0);
    } else if (status != REMAT_OK) {
        fail_msg("%s: %s", name, remat_context_message(context));
    }
    remat_context_destroy(context);
    assert_int_equal(memory.blocks, 0);
    return status;
}

static void fail_each(const char *name, memory_flow flow, void *user, uint64_t least, uint64_t all, bool reserve)
{
    bool reached = true;
    uint64_t n = 1;
    for (; reached && n < 1000000; n += n < all ? 1 : 2 + n % 3 + (n - all) / 16)
        run_failing(name, flow, user, n, reserve, &reached);
    assert_false(reached);
    if (n <= least)
        fail_msg("%s makes fewer than %llu allocations", name, (unsigned long long)least);
}

void expect_failures_survived(const char *name, memory_flow flow, void *user, uint64_t least, uint64_t all)
{
    fail_each(name, flow, user, least, all, true);
}

void expect_failures_without_reserve_survived(const char *name, memory_flow flow, void *user, uint64_t least,
                                              uint64_t all)
{
    fail_each(name, flow, user, least, all, false);
}

enum { ALL_OF_A_CALL = LESS_WHEN_SANITIZED(1000, 200) };

void expect_call_failures_survived(fixture *f, const char *name, memory_call call, void *user, uint64_t least)
{
    for (uint64_t n = 1;; n += n < ALL_OF_A_CALL ? 1 : 1 + n / 16) {
        f->memory.fail_at = f->memory.calls + n;
        remat_status status = call(user);
        const bool reached = f->memory.calls >= f->memory.fail_at;
        f->memory.fail_at = 0;
        if (!reached) {
            if (status != REMAT_OK)
                fail_msg("%s: %s", name, remat_context_message(f->context));
            if (n <= least)
                fail_msg("%s makes fewer than %llu allocations", name, (unsigned long long)least);
            return;
        }
        if (status != REMAT_NO_MEMORY)
            fail_msg("%s: allocation %llu failed with status %d: %s", name, (unsigned long long)n, status,
                     remat_context_message(f->context));
    }
}
