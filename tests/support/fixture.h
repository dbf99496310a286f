/* A context whose memory is counted: at the end of every test all of it must have come back. */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include "support/cases.h"
#include "support/failing_allocator.h"

typedef struct fixture {
    failing_allocator memory;
    remat_context *context;
    size_t warnings;    /* how many so far, */
    char warning[1024]; /* and the last one */
} fixture;

int fixture_setup(void **state);
int fixture_teardown(void **state);
#define FIXTURE_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

/* Fails the test, with the context's message, unless `got` is the status wanted. */
#define expect_status(fixture, got, wanted) expect_status_at((fixture)->context, got, wanted, __FILE__, __LINE__)
#define expect_ok(fixture, got)             expect_status(fixture, got, REMAT_OK)
void expect_status_at(const remat_context *context, remat_status got, remat_status wanted, const char *file, int line);

/* Fails the test unless `part` stands in the context's message. */
#define expect_message(fixture, part) \
    expect_text_at(remat_context_message((fixture)->context), part, __FILE__, __LINE__)
#define expect_text(text, part) expect_text_at(text, part, __FILE__, __LINE__)
void expect_text_at(const char *text, const char *part, const char *file, int line);

/* Fails the test unless the context says that `budget` bytes are too few and that `needed` would do. */
#define expect_budget_error(fixture, budget, needed) \
    expect_budget_error_at((fixture)->context, budget, needed, __FILE__, __LINE__)
void expect_budget_error_at(const remat_context *context, uint64_t budget, uint64_t needed, const char *file, int line);

/* A reading stream over bytes that stay where they are; empty text is fine. */
FILE *stream_of(const void *bytes, size_t length);

/* What is written to `stream` ends up as text[0..length), terminated, once capture_end was called; the caller frees. */
typedef struct capture {
    FILE *stream;
    char *text;
    size_t length;
} capture;
void capture_begin(capture *to);
void capture_end(capture *to);

/* Files as text; the caller frees. */
char *written_profile(const remat_profile *profile);
char *written_plan(const remat_plan *plan);

/* Reads text under the name "text". */
remat_status read_profile_bytes(fixture *f, const void *bytes, size_t length, remat_profile **profile);
remat_status read_profile_text(fixture *f, const char *text, remat_profile **profile);
remat_status check_plan_text(fixture *f, const char *text, const remat_profile *profile, remat_figures *figures);
remat_status read_plan_text(fixture *f, const char *text, const remat_profile *profile, remat_plan **plan);

/* Plans by the name of the strategy. `budget` may be REMAT_NO_BUDGET. */
remat_status make_plan(fixture *f, const remat_profile *profile, const char *strategy, uint64_t budget,
                       remat_budget_counts count, remat_plan **plan);

/* Seconds of work so far: other programs on the machine do not count. */
double cpu_seconds(void);

/* The exit code of a test program that cannot run here. CTest then says "skipped". */
enum { TEST_SKIPPED = 77 };

/* How much work a test may do: sanitized builds are several times slower. */
#if defined(__SANITIZE_ADDRESS__)
#define TESTS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define TESTS_SANITIZED
#endif
#endif
#ifdef TESTS_SANITIZED
#define LESS_WHEN_SANITIZED(plain, sanitized) (sanitized)
#else
#define LESS_WHEN_SANITIZED(plain, sanitized) (plain)
#endif

#endif
