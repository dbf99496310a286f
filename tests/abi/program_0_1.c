#include "program_0_1.h"

#include <math.h>
#include <unistd.h>

/* ---- checks ---- */

void check_at(bool holds, const char *what, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    exit(1);
}

void status_at(const remat_context *context, remat_status got, remat_status wanted, const char *file, int line)
{
    if (got == wanted)
        return;
    fprintf(stderr, "%s:%d: status %d (%s), not %d: %s\n", file, line, got, remat_status_text(got), wanted,
            remat_context_message(context));
    exit(1);
}

bool guard_is_intact(const unsigned char guard[GUARD_BYTES])
{
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (guard[i] != 0xa5)
            return false;
    return true;
}

static char folder[] = "/tmp/remat-abi-XXXXXX";
static char paths[8][64];
static size_t path_count;

const char *scratch_path(const char *name)
{
    for (size_t i = 0; i < path_count; i++)
        if (strcmp(strrchr(paths[i], '/') + 1, name) == 0)
            return paths[i];
    CHECK(path_count < 8);
    snprintf(paths[path_count], sizeof paths[0], "%s/%s", folder, name);
    return paths[path_count++];
}

/* ---- what everything needs ---- */

typedef struct memory {
    size_t bytes, calls;
} memory;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    memory *held = user;
    void *made = NULL;
    if (posix_memalign(&made, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes) != 0)
        return NULL;
    held->bytes += bytes;
    held->calls++;
    return made;
}

static void release(void *user, void *held_memory, size_t bytes)
{
    memory *held = user;
    held->bytes -= bytes;
    free(held_memory);
}

static void warn(void *user, const char *message)
{
    CHECK(message[0] != '\0');
    ++*(size_t *)user;
}

static void use_texts(remat_context *context)
{
    uint64_t bytes = 0;
    char text[REMAT_COUNT_TEXT];
    printf("%s; %s\n", remat_status_text(REMAT_INFEASIBLE), remat_precision_name(REMAT_BF16));
    CHECK(strlen(remat_version()) >= 5 && remat_kernels_name()[0] && remat_compiler_name()[0]);
    CHECK(remat_openmp_version() >= 0 && strncmp(remat_chart_name(), "Chart.js", 8) == 0);
    OK(context, remat_size_parse(context, "1.5GiB", &bytes));
    CHECK(bytes == 3 * (UINT64_C(1) << 29));
    OK(context, remat_count_parse(context, "12", &bytes));
    CHECK(bytes == 12);
    OK(context, remat_size_from_mib(context, 0.5, &bytes));
    CHECK(bytes == 1 << 19);
    printf("%s, ", remat_size_print(1001, text));
    printf("%s, ", remat_size_print_up(123456789, text));
    printf("%s\n", remat_count_print(9000000, text));
    FAILS(context, remat_size_parse(context, "8G", &bytes), REMAT_INVALID);
    const remat_error *error = remat_context_error(context);
    CHECK(error->status == REMAT_INVALID && strcmp(error->message, remat_context_message(context)) == 0);
    CHECK(error->line == REMAT_NOWHERE && error->layer == REMAT_NOWHERE && error->step == REMAT_NOWHERE);
    CHECK(error->file[0] == '\0' && error->field[0] == '\0');
}

static void use_random_numbers(void)
{
    remat_random stream = remat_random_stream(1, 2, 3);
    uint32_t block[4], counter[4] = {0}, key[2] = {0};
    remat_random_block(&stream, 5, block);
    printf("%08x %016llx %.9g %llu %.9g ", block[3], (unsigned long long)remat_random_bits(&stream, 7),
           (double)remat_random_uniform(&stream, 8), (unsigned long long)remat_random_below(&stream, 9, 1000),
           remat_random_normal(&stream, 10));
    remat_philox4x32(counter, key, block);
    printf("%08x\n", block[0]);
    CHECK(block[0] == 0x6627e8d5); /* the published vector of all zeros */
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    memory held = {0, 0};
    size_t warnings = 0;
    GUARDED(remat_allocator, allocator); /* what lies behind it is not the library's to read, either */
    *allocator = (remat_allocator){allocate, release, &held};
    remat_context *context;
    CHECK(remat_context_create(allocator, &context) == REMAT_OK);
    INTACT(allocator);
    CHECK(held.calls > 0);
    remat_context_on_warning(context, warn, &warnings);
    use_texts(context);
    use_random_numbers();
    use_profiles(context);
    use_plans(context);
    use_arenas(context);
    use_checkpointers(context);
    use_tapes(context);
    use_models(context);
    use_trainers(context);
    use_predictors(context);
    use_reports(context);
    CHECK(warnings > 0);
    CHECK(remat_context_bytes(context) == 0 && remat_context_peak_bytes(context) > 0);
    remat_context_destroy(context);
    remat_context_destroy(NULL);
    CHECK(held.bytes == 0);
    CHECK(remat_context_create(NULL, &context) == REMAT_OK);
    remat_context_destroy(context);
    for (size_t i = 0; i < path_count; i++)
        remove(paths[i]);
    CHECK(rmdir(folder) == 0);
    puts("done");
    return 0;
}
