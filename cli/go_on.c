#include "go_on.h"
#include "shown.h"

#include <stdbool.h>
#include <string.h>

/* Prints one word as a shell reads it. */
static void print_word(FILE *to, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%"; /* what no shell changes */
    word = shown(word);
    if (*word && strspn(word, plain) == strlen(word)) {
        fprintf(to, " %s", word);
        return;
    }
    fputs(" '", to);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, 0}, to);
    fputc('\'', to);
}

/* Whether `word` is the option `--name`, which may be shortened and may have its value behind '='. */
static bool is_option(const char *word, const char *name)
{
    if (strncmp(word, "--", 2) != 0 || !word[2])
        return false;
    const size_t length = strcspn(word + 2, "=");
    return length <= strlen(name) && strncmp(word + 2, name, length) == 0;
}

/* How many words the option at argv[i] takes that are left out; 0: it stays. */
static int left_out(int argc, char *const *argv, int i, bool other_steps)
{
    static const char *const with_value[] = {"resume", "weights", "seed", "save", "map"};
    const char *word = argv[i];
    const int words = strchr(word, '=') || i + 1 == argc ? 1 : 2;
    if (is_option(word, "partial"))
        return 1;
    if (strcmp(word, "-w") == 0)
        return 2;
    if (strncmp(word, "-w", 2) == 0)
        return 1;
    for (size_t n = 0; n < sizeof with_value / sizeof with_value[0]; n++)
        if (is_option(word, with_value[n]))
            return words;
    return other_steps && is_option(word, "steps") ? words : 0;
}

void go_on_print(FILE *to, int argc, char *const *argv, const char *saved, uint64_t steps)
{
    fputs("remat train", to);
    for (int i = 1; i < argc;) {
        const int words = left_out(argc, argv, i, steps > 0);
        if (words == 0)
            print_word(to, argv[i++]);
        else
            i += words;
    }
    if (steps)
        fprintf(to, " --steps %llu", (unsigned long long)steps);
    fputs(" --resume", to);
    print_word(to, saved);
    fputs(" --save", to);
    print_word(to, saved);
}
