#include "command.h"
#include "did_you_mean.h"
#include "shown.h"
#include "waiting.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* argp aborts where it finds no memory for the text of --help. */
static void end_without_memory(int number)
{
    static const char message[] = "remat: out of memory\n";
    (void)number;
    ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
    (void)written;
    _exit(REMAT_NO_MEMORY);
}

/* argp leaves out what it finds no memory for, and says nothing. It takes a few KiB: they are there, or it does not begin. */
static void reserve_memory(void)
{
    void *reserve = malloc(1 << 16); /* small enough to stay with the process when it is released */
    if (!reserve) {
        fputs("remat: out of memory\n", stderr);
        exit(REMAT_NO_MEMORY);
    }
    free(reserve);
}

/* ---- options that there are not ---- */

/* The long option that begins so, for argp takes abbreviations; NULL: none does. */
static const struct argp_option *find_long(const struct argp *argp, const char *name, size_t length)
{
    static const struct argp_option own[] = {{"help", 0, NULL, 0, NULL, 0}, {"usage", 0, NULL, 0, NULL, 0}};
    for (const struct argp_option *at = argp->options; at->name || at->key || at->doc; at++)
        if (at->name && strncmp(at->name, name, length) == 0)
            return at;
    for (const struct argp_child *child = argp->children; child && child->argp; child++) {
        const struct argp_option *found = find_long(child->argp, name, length);
        if (found)
            return found;
    }
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strncmp(own[i].name, name, length) == 0)
            return &own[i];
    return NULL;
}

static const struct argp_option *find_short(const struct argp *argp, char letter)
{
    for (const struct argp_option *at = argp->options; at->name || at->key || at->doc; at++)
        if (at->key == letter)
            return at;
    return NULL;
}

static void try_options(const struct argp *argp, did_you_mean *words)
{
    for (const struct argp_option *at = argp->options; at->name || at->key || at->doc; at++)
        if (at->name)
            did_you_mean_try(words, at->name);
    for (const struct argp_child *child = argp->children; child && child->argp; child++)
        try_options(child->argp, words);
}

static void refuse_option(const struct argp *argp, const char *command, const char *text)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
    did_you_mean words = {.typed = name + strspn(name, "-")};
    if (name[1] == '-')
        try_options(argp, &words);
    fprintf(stderr, "%s: there is no option '%s'; ", command, shown(name));
    if (words.nearest)
        fprintf(stderr, "did you mean --%s? ", words.nearest);
    fprintf(stderr, "'%s --help' lists them\n", command);
    exit(REMAT_INVALID);
}

/* Whether an argument that begins with '-' is an option of the command. *takes_next: the next argument belongs to it. */
static bool is_option(const struct argp *argp, const char *text, bool *takes_next)
{
    const struct argp_option *found;
    *takes_next = false;
    if (text[1] == '-') {
        size_t length = strcspn(text + 2, "=");
        found = find_long(argp, text + 2, length);
        *takes_next = found && found->arg && !text[2 + length];
        return found != NULL;
    }
    for (const char *letter = text + 1; *letter; letter++) {
        found = *letter == '?' ? &(const struct argp_option){0} : find_short(argp, *letter);
        if (!found)
            return false;
        *takes_next = found->arg && !letter[1];
        if (found->arg)
            return true;
    }
    return true;
}

/* argp prints an unknown option as it was typed, and does not say which one may be meant. */
static void refuse_unknown_options(const struct argp *argp, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool takes_next;
        if (argv[i][0] != '-' || !argv[i][1])
            continue;
        if (!is_option(argp, argv[i], &takes_next))
            refuse_option(argp, argv[0], argv[i]);
        i += takes_next;
    }
}

void command_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    argp_err_exit_status = REMAT_INVALID;
    reserve_memory();
    signal(SIGABRT, end_without_memory);
    refuse_unknown_options(argp, argc, argv);
    error_t failed = argp_parse(argp, argc, argv, 0, NULL, input);
    signal(SIGABRT, SIG_DFL);
    if (failed) {
        fprintf(stderr, "remat: the options cannot be read: %s\n", strerror(failed));
        exit(failed == ENOMEM ? REMAT_NO_MEMORY : REMAT_INVALID);
    }
}

void command_take(struct argp_state *state, const char *what, const char *argument, const char **taken)
{
    if (*taken)
        argp_error(state, "one %s is enough; '%s' is a second", what, shown(argument));
    *taken = argument;
}

int command_fail(remat_context *context, remat_status status)
{
    const char *message = remat_context_message(context);
    waiting_clear();
    fprintf(stderr, "remat: %s\n", message[0] ? message : remat_status_text(status));
    return (int)status;
}

remat_status command_open(remat_context *context, const char *path, FILE **stream, const char **name)
{
    bool standard_input = strcmp(path, "-") == 0;
    *name = standard_input ? "<stdin>" : path;
    *stream = stdin;
    remat_status status = standard_input ? REMAT_OK : remat_input_open(context, path, stream);
    if (status != REMAT_OK)
        command_fail(context, status);
    return status;
}

remat_status command_close(remat_context *context, FILE *stream, remat_status status)
{
    if (stream != stdin)
        fclose(stream);
    if (status != REMAT_OK)
        command_fail(context, status);
    return status;
}

remat_status command_read_profile(remat_context *context, const char *path, remat_profile **profile)
{
    FILE *stream;
    const char *name;
    remat_status status = command_open(context, path, &stream, &name);
    return status == REMAT_OK ? command_close(context, stream, remat_profile_read(context, stream, name, profile))
                              : status;
}

uint64_t command_size(struct argp_state *state, remat_context *context, const char *text)
{
    uint64_t bytes = 0;
    if (remat_size_parse(context, text, &bytes) != REMAT_OK)
        argp_error(state, "%s", remat_context_message(context));
    return bytes;
}

uint64_t command_count(struct argp_state *state, remat_context *context, const char *text)
{
    uint64_t count = 0;
    if (remat_count_parse(context, text, &count) != REMAT_OK)
        argp_error(state, "%s", remat_context_message(context));
    return count;
}

uint64_t command_number(struct argp_state *state, remat_context *context, const char *option, uint64_t most,
                        const char *text)
{
    uint64_t number = command_count(state, context, text);
    if (number == 0 && most == UINT64_MAX)
        argp_error(state, "%s takes a number from 1 on", option);
    if (number == 0 || number > most)
        argp_error(state, "%s takes a number from 1 to %llu, not %s", option, (unsigned long long)most, shown(text));
    return number;
}

uint64_t command_batch(struct argp_state *state, remat_context *context, const char *text, batch_choice *choice)
{
    batch_choice chosen = BATCH_GIVEN;
    if (choice)
        chosen = strcmp(text, "auto") == 0 ? BATCH_FASTEST : strcmp(text, "largest") == 0 ? BATCH_LARGEST : BATCH_GIVEN;
    uint64_t batch = chosen != BATCH_GIVEN ? 0 : command_count(state, context, text);
    if (batch == 0 && chosen == BATCH_GIVEN)
        argp_error(state, "--batch takes a number from 1 on%s", choice ? ", or auto, or largest" : "");
    if (choice)
        *choice = chosen;
    return batch;
}

unsigned command_threads(struct argp_state *state, remat_context *context, const char *text)
{
    return (unsigned)command_number(state, context, "--threads", 1024, text);
}
