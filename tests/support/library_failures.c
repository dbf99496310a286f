#include "support/library_failures.h"

void expect_calls_survived(fixture *f, memory_flow flow, void *user, const failing_library *library,
                           const char *message, int least)
{
    int failures = 0;
    for (int n = 1;; n++) {
        *library->calls = 0;
        *library->fails_at = n;
        const remat_status status = flow(f->context, user);
        *library->fails_at = 0;
        assert_int_equal(*library->open, 0);
        if (*library->calls < n) {
            expect_ok(f, status);
            break;
        }
        assert_true(n < 1000);
        if (status == REMAT_OK)
            continue; /* closing cannot fail: there is nobody to tell */
        expect_status(f, status, REMAT_IO);
        expect_message(f, message);
        failures++;
    }
    if (failures < least)
        fail_msg("only %d failures", failures);
}
