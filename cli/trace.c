#include "trace.h"
#include "run_text.h"
#include "shown.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rows of the picture. */
enum { ROW_STEP = 1, ROW_RECOMPUTE = 2, ROW_SEND = 3 };

struct trace {
    remat_trainer *trainer;
    const char *path;
    FILE *stream;
    uint64_t start;     /* of the first action: traces begin at 0 */
    uint64_t transfers; /* halves of them: beginnings and ends */
    bool begun, failed;
};

static void put_row(FILE *to, const char *event, int row, const char *name)
{
    fprintf(to, "{\"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"name\": \"%s\", \"args\": {\"name\": \"%s\"}}", row, event,
            name);
}

/* Times are microseconds in the file, with the nanoseconds as decimals. */
static void put_time(FILE *to, const char *key, uint64_t nanoseconds)
{
    fprintf(to, ", \"%s\": %llu.%03llu", key, (unsigned long long)(nanoseconds / 1000),
            (unsigned long long)(nanoseconds % 1000));
}

/* Training goes on without a trace that cannot be written. */
static bool has_failed(trace *made)
{
    if (!made->failed && ferror(made->stream)) {
        made->failed = true;
        fprintf(stderr, "remat: warning: %s: writing failed: %s; the training goes on without a trace\n",
                shown(made->path), strerror(errno));
    }
    if (made->failed)
        __fpurge(made->stream); /* behind what is lost, nothing more */
    return made->failed;
}

/* Transfers between ranks overlap each other and the training: they are asynchronous events, on a row of their own. */
static void note_sending(trace *made, const remat_action *action)
{
    FILE *to = made->stream;
    for (int end = 0; end < 2; end++) {
        fprintf(to, ",\n{\"ph\": \"%c\", \"pid\": 1, \"tid\": %d, \"cat\": \"%s\", \"id\": %llu, \"name\": ",
                end ? 'e' : 'b', ROW_SEND, action->phase, (unsigned long long)++made->transfers / 2 + (end ? 0 : 1));
        run_text_json_quoted(to, action->layer);
        put_time(to, "ts", (end ? action->ended : action->began) - made->start);
        fprintf(to, ", \"args\": {\"bytes\": %llu}}", (unsigned long long)action->bytes);
    }
}

static void note_action(void *user, const remat_action *action)
{
    trace *made = user;
    FILE *to = made->stream;
    if (has_failed(made))
        return;
    bool is_recompute = strcmp(action->phase, "recompute") == 0;
    if (!made->begun)
        made->start = action->began;
    made->begun = true;
    if (strcmp(action->phase, "send") == 0 || strcmp(action->phase, "sum") == 0 ||
        strcmp(action->phase, "gather") == 0) {
        note_sending(made, action);
        return;
    }
    fprintf(to, ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"name\": ", is_recompute ? ROW_RECOMPUTE : ROW_STEP);
    run_text_json_quoted(to, action->layer);
    fprintf(to, ", \"cat\": \"%s\"", action->phase);
    put_time(to, "ts", action->began - made->start);
    put_time(to, "dur", action->ended - action->began);
    fprintf(to, ", \"args\": {\"what\": \"%s\", \"flops\": %llu, \"bytes\": %llu}}", action->phase,
            (unsigned long long)action->flops, (unsigned long long)action->bytes);
    fprintf(to, ",\n{\"ph\": \"C\", \"pid\": 1, \"name\": \"arena\"");
    put_time(to, "ts", action->began - made->start);
    fprintf(to, ", \"args\": {\"bytes\": %llu}}", (unsigned long long)action->live_bytes);
}

static trace *make(remat_trainer *trainer, const char *path)
{
    trace *made = calloc(1, sizeof *made);
    int file = made ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0666) : -1;
    FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
    if (!stream) {
        fprintf(stderr, "remat: %s: cannot be opened: %s\n", shown(path),
                errno == ENXIO ? "nobody reads this pipe" : strerror(errno));
        if (file >= 0)
            close(file);
        free(made);
        return NULL;
    }
    fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK); /* which only kept a pipe from waiting for a reader */
    *made = (trace){.trainer = trainer, .path = path, .stream = stream};
    return made;
}

remat_status trace_start(remat_context *context, remat_trainer *trainer, const char *path, trace **started)
{
    *started = NULL;
    trace *made = make(trainer, path);
    if (!made)
        return REMAT_IO;
    FILE *to = made->stream;
    fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n", to);
    put_row(to, "process_name", ROW_STEP, "remat train");
    fputs(",\n", to);
    put_row(to, "thread_name", ROW_STEP, "training");
    fputs(",\n", to);
    put_row(to, "thread_name", ROW_RECOMPUTE, "recomputed");
    remat_status status = remat_trainer_on_action(trainer, note_action, made);
    if (status == REMAT_OK) {
        *started = made;
        return REMAT_OK;
    }
    command_fail(context, status);
    fclose(to);
    free(made);
    return status;
}

void trace_end(trace *made)
{
    if (!made)
        return;
    remat_trainer_on_action(made->trainer, NULL, NULL);
    if (!has_failed(made))
        fputs("\n]}\n", made->stream);
    fflush(made->stream);
    has_failed(made);
    fclose(made->stream);
    free(made);
}
