#include "fuzz/fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- memory ---- */

/* Far more than any file of the corpus needs, and little enough to be filled in no time. */
enum { MOST_BYTES = 48 << 20 };

static size_t held;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    void *memory = NULL;
    if (bytes > MOST_BYTES - held)
        return NULL;
    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes) != 0)
        return NULL;
    held += bytes;
    return memory;
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    held -= bytes;
    free(memory);
}

/* A message is for a terminal: it holds nothing on which one would act. */
static void check_message(const char *message)
{
    char shown[4096];
    FUZZ_CHECK(message[0]);
    remat_text_escape(message, shown, sizeof shown);
    FUZZ_CHECK(strcmp(message, shown) == 0);
}

static void look_at_warning(void *user, const char *message)
{
    (void)user;
    check_message(message);
}

remat_context *fuzz_begin(void)
{
    const remat_allocator allocator = {allocate, release, NULL};
    remat_context *context;
    FUZZ_CHECK(remat_context_create(&allocator, &context) == REMAT_OK);
    remat_context_on_warning(context, look_at_warning, NULL);
    return context;
}

void fuzz_end(remat_context *context)
{
    FUZZ_CHECK(remat_context_bytes(context) == 0);
    remat_context_destroy(context);
}

bool fuzz_accepted(const remat_context *context, remat_status status)
{
    if (status == REMAT_OK)
        return true;
    FUZZ_CHECK(status == REMAT_BAD_INPUT || status == REMAT_INVALID || status == REMAT_NO_MEMORY ||
               status == REMAT_CHECK_FAILED || status == REMAT_INFEASIBLE || status == REMAT_IO);
    check_message(remat_context_message(context));
    FUZZ_CHECK(remat_context_error(context)->status == status);
    return false;
}

/* ---- bytes as streams and files ---- */

FILE *fuzz_stream(const void *data, size_t size)
{
    FILE *stream = size ? fmemopen((void *)(uintptr_t)data, size, "r") : fopen("/dev/null", "r");
    FUZZ_CHECK(stream);
    return stream;
}

char *fuzz_text(const void *data, size_t size)
{
    char *text = malloc(size + 1);
    FUZZ_CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

const char *fuzz_file(unsigned which, const void *data, size_t size)
{
    static int files[4];
    static char paths[4][32];
    if (!files[which])
        files[which] = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_CHECK(files[which] > 0);
    FUZZ_CHECK(ftruncate(files[which], 0) == 0);
    FUZZ_CHECK(pwrite(files[which], data, size, 0) == (ssize_t)size);
    snprintf(paths[which], sizeof paths[which], "/proc/self/fd/%d", files[which]);
    return paths[which];
}

/* Saving puts a new file in the place of the old one, so this must be one with a name. */
const char *fuzz_save_path(void)
{
    static char path[64];
    if (!path[0])
        snprintf(path, sizeof path, "%s/remat-fuzz-%d", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
                 (int)getpid());
    return path;
}

void fuzz_save_end(void)
{
    unlink(fuzz_save_path());
}

void fuzz_output_begin(fuzz_output *output)
{
    *output = (fuzz_output){0};
    output->stream = open_memstream(&output->text, &output->length);
    FUZZ_CHECK(output->stream);
}

void fuzz_output_end(fuzz_output *output)
{
    FUZZ_CHECK(fclose(output->stream) == 0);
    output->stream = NULL;
}

void fuzz_round_trip(const uint8_t *data, size_t size, size_t longest, fuzz_rewrite_fn rewrite)
{
    remat_context *context = fuzz_begin();
    fuzz_output first, second;
    fuzz_output_begin(&first);
    bool accepted = fuzz_accepted(context, rewrite(context, data, size, first.stream));
    fuzz_output_end(&first);
    if (accepted && size <= longest) {
        fuzz_output_begin(&second);
        FUZZ_CHECK(rewrite(context, first.text, first.length, second.stream) == REMAT_OK);
        fuzz_output_end(&second);
        FUZZ_CHECK(strcmp(first.text, second.text) == 0);
        free(second.text);
    }
    free(first.text);
    fuzz_end(context);
}

uint8_t fuzz_take(const uint8_t **data, size_t *size)
{
    if (!*size)
        return 0;
    --*size;
    return *(*data)++;
}

const char *fuzz_safetensors_file(unsigned which, const uint8_t *data, size_t size)
{
    if (!size || data[0] != '{')
        return fuzz_file(which, data, size);
    /* The header says how long the values are: the largest number behind "data_offsets" is their end. */
    char *text = fuzz_text(data, size);
    unsigned long long most = 0;
    for (const char *at = strstr(text, "data_offsets"); at; at = strstr(at + 1, "data_offsets")) {
        unsigned long long from, to;
        if (sscanf(at, "data_offsets\" : [ %llu , %llu", &from, &to) == 2 && to > most && to < 1 << 16)
            most = to;
    }
    free(text);
    size_t length = 8 + size + (size_t)most;
    uint8_t *bytes = malloc(length);
    FUZZ_CHECK(bytes);
    for (size_t i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)size >> 8 * i);
    memcpy(bytes + 8, data, size);
    for (size_t i = 0; i < most; i++)
        bytes[8 + size + i] = (uint8_t)(i % 4 == 3 ? 0x3f : 7 * i); /* floats around 1 */
    const char *path = fuzz_file(which, bytes, length);
    free(bytes);
    return path;
}

remat_profile *fuzz_profile_of_six(remat_context *context)
{
    remat_profile *profile;
    FUZZ_CHECK(remat_profile_create(context, &profile) == REMAT_OK);
    for (uint64_t i = 0; i < 6; i++) {
        remat_mode_options modes[2];
        remat_mode_options_init(&modes[0]);
        remat_mode_options_init(&modes[1]);
        modes[0].name = "half";
        modes[0].activation_bytes = 60 + i;
        modes[0].holds_output = i % 2 == 0;
        modes[1].name = "int8";
        modes[1].activation_bytes = 20 + i;
        modes[1].lossless = false;
        remat_layer_options layer;
        remat_layer_options_init(&layer);
        layer.type = i % 2 ? REMAT_FFN : REMAT_ATTENTION;
        layer.activation_bytes = 100 + 40 * i;
        layer.output_bytes = 50;
        layer.recompute_flops = 1000 * (i + 1);
        layer.modes = modes;
        layer.mode_count = i % 3;
        FUZZ_CHECK(remat_profile_add_layer(profile, &layer) == REMAT_OK);
    }
    FUZZ_CHECK(remat_profile_set_input_bytes(profile, 50) == REMAT_OK);
    return profile;
}

/* ---- the target ---- */

static const struct {
    const char *name;
    void (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define X(name) {#name, fuzz_##name},
    FUZZ_TARGETS(X)
#undef X
};
enum { TARGET_COUNT = sizeof targets / sizeof targets[0] };
static size_t chosen = TARGET_COUNT;

/* The first argument names the target. libFuzzer starts itself again without it when it merges: the environment keeps
 * it. Without any name the targets are listed. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    if (*argc > 1 && (*argv)[1][0] != '-') {
        setenv("FUZZ_TARGET", (*argv)[1], 1);
        (*argv)[1] = (*argv)[0];
        ++*argv;
        --*argc;
    }
    const char *name = getenv("FUZZ_TARGET");
    for (size_t i = 0; i < TARGET_COUNT; i++)
        if (name && strcmp(name, targets[i].name) == 0)
            chosen = i;
    if (chosen < TARGET_COUNT)
        return 0;
    if (name)
        fprintf(stderr, "There is no target '%s'. The targets:\n", name);
    for (size_t i = 0; i < TARGET_COUNT; i++)
        puts(targets[i].name);
    exit(name ? 2 : 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    targets[chosen].run(data, size);
    return 0;
}
