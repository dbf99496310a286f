#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void command_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    argp_err_exit_status = REMAT_INVALID;
    argp_parse(argp, argc, argv, 0, NULL, input);
}

int command_fail(remat_context *context, remat_status status)
{
    const char *message = remat_context_message(context);
    fprintf(stderr, "remat: %s\n", message[0] ? message : remat_status_text(status));
    return (int)status;
}

remat_status command_open(remat_context *context, const char *path, FILE **stream, const char **name)
{
    (void)context;
    bool standard_input = strcmp(path, "-") == 0;
    *name = standard_input ? "<stdin>" : path;
    *stream = standard_input ? stdin : fopen(path, "r");
    if (*stream)
        return REMAT_OK;
    fprintf(stderr, "remat: %s: cannot be opened: %s\n", path, strerror(errno));
    return REMAT_IO;
}

void command_close(FILE *stream)
{
    if (stream && stream != stdin)
        fclose(stream);
}

remat_status command_read_profile(remat_context *context, const char *path, remat_profile **profile)
{
    FILE *stream;
    const char *name;
    remat_status status = command_open(context, path, &stream, &name);
    if (status != REMAT_OK)
        return status;
    status = remat_profile_read(context, stream, name, profile);
    command_close(stream);
    if (status != REMAT_OK)
        command_fail(context, status);
    return status;
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
    uint64_t count = command_count(state, context, text);
    if (count == 0 || count > 1024)
        argp_error(state, "--threads takes a number from 1 to 1024, not %s", text);
    return (unsigned)count;
}
