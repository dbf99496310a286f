/* What the program gives back between planning and training. */
#include <stdio.h>

#include "memory_limit.h"
#include "support/fixture.h"

/* Bytes of files that are mapped into this process. */
static unsigned long long resident_of_files(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long kib = 0;
    assert_non_null(status);
    while (fgets(line, sizeof line, status) && sscanf(line, "RssFile: %llu kB", &kib) != 1)
        ;
    fclose(status);
    return kib * 1024;
}

/* The code goes on after its pages were given back; fewer of them are resident then. */
static void code_is_given_back(void **state)
{
    (void)state;
    static const char kept[] = "constants are read again";
    const unsigned long long before = resident_of_files();
    if (before == 0)
        skip(); /* a system that does not count them */
    memory_trim();
    const unsigned long long after = resident_of_files();
    printf("%llu KiB of files before, %llu after\n", before >> 10, after >> 10);
    assert_true(after < before);
    assert_string_equal(kept, "constants are read again");
    memory_trim();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(code_is_given_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
