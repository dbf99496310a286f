#include "command.h"

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

void command_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    argp_err_exit_status = REMAT_INVALID;
    reserve_memory();
    signal(SIGABRT, end_without_memory);
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
        argp_error(state, "one %s is enough; '%s' is a second", what, argument);
    *taken = argument;
}

int command_fail(remat_context *context, remat_status status)
{
    const char *message = remat_context_message(context);
    fprintf(stderr, "remat: %s\n", message[0] ? message : remat_status_text(status));
    return (int)status;
}

remat_status command_open(const char *path, FILE **stream, const char **name)
{
    bool standard_input = strcmp(path, "-") == 0;
    *name = standard_input ? "<stdin>" : path;
    *stream = standard_input ? stdin : fopen(path, "r");
    if (*stream)
        return REMAT_OK;
    fprintf(stderr, "remat: %s: cannot be opened: %s\n", path, strerror(errno));
    return REMAT_IO;
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
    remat_status status = command_open(path, &stream, &name);
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
        argp_error(state, "%s takes a number from 1 to %llu, not %s", option, (unsigned long long)most, text);
    return number;
}

uint64_t command_batch(struct argp_state *state, remat_context *context, const char *text, bool *largest)
{
    bool automatic = largest && strcmp(text, "auto") == 0;
    uint64_t batch = automatic ? 0 : command_count(state, context, text);
    if (batch == 0 && !automatic)
        argp_error(state, "--batch takes a number from 1 on%s", largest ? ", or auto" : "");
    if (largest)
        *largest = automatic;
    return batch;
}

unsigned command_threads(struct argp_state *state, remat_context *context, const char *text)
{
    return (unsigned)command_number(state, context, "--threads", 1024, text);
}
