/* Runs a target without libFuzzer: fuzz NAME FILE-OR-FOLDER... feeds it every file, and then changed copies of each. The
 * changes are the same in every run. FUZZ_COPIES in the environment says how many copies there are in all.
 *
 * The input that is being tried is in NAME.input in the current folder: if the target crashes, it is still there. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { LONGEST_INPUT = 1 << 16 };

typedef struct input {
    uint8_t *bytes;
    size_t size;
} input;

static input *inputs;
static size_t input_count;

/* ---- the input that is being tried ---- */

static char trial_path[256];
static int trial_file;
static uint8_t trial[LONGEST_INPUT];

static void trial_begin(const char *name)
{
    snprintf(trial_path, sizeof trial_path, "%s.input", name);
    trial_file = open(trial_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    FUZZ_CHECK(trial_file >= 0);
    char folder[4096];
    fprintf(stderr, "The input that is being tried: %s/%s\n", getcwd(folder, sizeof folder) ? folder : ".", trial_path);
}

/* The target gets a block of exactly this size, so that AddressSanitizer sees what is read behind its end. */
static void try_bytes(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    FUZZ_CHECK(copy);
    memcpy(copy, bytes, size);
    FUZZ_CHECK(pwrite(trial_file, copy, size, 0) == (ssize_t)size && ftruncate(trial_file, (off_t)size) == 0);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void trial_end(void)
{
    close(trial_file);
    unlink(trial_path);
}

/* ---- the corpus ---- */

static void add_file(const char *path)
{
    FILE *file = fopen(path, "re");
    static uint8_t bytes[LONGEST_INPUT];
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    inputs = realloc(inputs, (input_count + 1) * sizeof *inputs);
    FUZZ_CHECK(inputs);
    inputs[input_count] = (input){malloc(size ? size : 1), size};
    FUZZ_CHECK(inputs[input_count].bytes);
    memcpy(inputs[input_count++].bytes, bytes, size);
}

static void add(const char *path)
{
    struct dirent **files;
    int count = scandir(path, &files, NULL, alphasort); /* in a fixed order */
    if (count < 0) {
        add_file(path);
        return;
    }
    for (int i = 0; i < count; i++) {
        char *inside;
        FUZZ_CHECK(asprintf(&inside, "%s/%s", path, files[i]->d_name) > 0);
        if (files[i]->d_name[0] != '.')
            add_file(inside);
        free(inside);
        free(files[i]);
    }
    free(files);
}

/* ---- changes ---- */

static uint64_t random_state = 1;

static size_t below(size_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)(random_state % bound);
}

static size_t put(size_t size, size_t at, const void *bytes, size_t count)
{
    if (size + count > LONGEST_INPUT)
        return size;
    memmove(trial + at + count, trial + at, size - at);
    memcpy(trial + at, bytes, count);
    return size + count;
}

static size_t change(size_t size)
{
    static const char *const words[] = {"0",
                                        "-1",
                                        "9223372036854775807",
                                        "18446744073709551616",
                                        "1e999",
                                        "nan",
                                        "null",
                                        "\"",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "\n",
                                        "\xef\xbb\xbf",
                                        "\\u0000",
                                        "="};
    size_t at = below(size + 1), count = size > at ? 1 + below(size - at < 16 ? size - at : 16) : 0;
    const input *other = &inputs[below(input_count)];
    const char *word = words[below(sizeof words / sizeof words[0])];
    switch (below(8)) {
    case 0: /* a bit */
        if (at < size)
            trial[at] ^= (uint8_t)(1u << below(8));
        return size;
    case 1: /* a byte */
        if (at < size)
            trial[at] = (uint8_t)below(256);
        return size;
    case 2: /* a part goes */ memmove(trial + at, trial + at + count, size - at - count); return size - count;
    case 3: { /* a part stands twice */
        uint8_t part[16];
        memcpy(part, trial + at, count);
        return put(size, at, part, count);
    }
    case 4: return put(size, at, word, strlen(word));
    case 5: /* the end is cut off */ return at;
    case 6: /* a part of another input */
        if (!other->size)
            return size;
        count = below(other->size);
        return put(size, at, other->bytes + count, other->size - count < 64 ? other->size - count : 64);
    default: /* another digit */
        for (; at < size; at++)
            if (trial[at] >= '0' && trial[at] <= '9') {
                trial[at] = (uint8_t)('0' + below(10));
                break;
            }
        return size;
    }
}

static size_t change_often(const input *from)
{
    size_t size = from->size;
    memcpy(trial, from->bytes, size);
    for (size_t changes = 1 + below(4); changes; changes--)
        size = change(size);
    return size;
}

int main(int argc, char **argv)
{
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        add(argv[i]);
    if (!input_count) {
        fprintf(stderr, "usage: fuzz NAME FILE-OR-FOLDER...\n");
        return 2;
    }
    trial_begin(getenv("FUZZ_TARGET"));
    for (size_t i = 0; i < input_count; i++)
        try_bytes(inputs[i].bytes, inputs[i].size);
    const char *wanted = getenv("FUZZ_COPIES");
    for (unsigned long i = 0, copies = wanted ? strtoul(wanted, NULL, 10) : 0; i < copies; i++) {
        size_t size = change_often(&inputs[i % input_count]);
        try_bytes(trial, size);
    }
    trial_end();
    for (size_t i = 0; i < input_count; i++)
        free(inputs[i].bytes);
    free(inputs);
    return 0;
}
