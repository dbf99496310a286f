#include "command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command {
    const char *name, *summary;
    command_fn run;
} commands[] = {
    {"train", "train a model within a budget", command_train},
    {"eval", "the loss of trained weights on the validation data", command_eval},
    {"predict", "run a trained model on its dataset", command_predict},
    {"generate", "let a trained model of bytes go on with a text", command_generate},
    {"fit", "say whether a model fits, and what would", command_fit},
    {"profile", "time every layer of a model", command_profile},
    {"bench", "time every layer and phase against the limits of the machine", command_bench},
    {"summary", "show the layers of a model, their shapes and bytes", command_summary},
    {"plan", "decide which layers to keep and which to recompute", command_plan},
    {"sweep", "show the whole curve of cost over memory", command_sweep},
    {"check", "replay a plan and say whether it is what it states", command_check},
    {"arena", "give tensors their places in one piece of memory", command_arena},
    {"report", "make a page to look at: memory over time, the curve, the layers", command_report},
    {"layers", "list the layer types and their properties", command_layers},
    {"doctor", "say what was found on this machine", command_doctor},
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_help(FILE *to)
{
    fputs("Usage: remat COMMAND [OPTION...] FILE\n"
          "Train neural networks in the memory you have.\n\nCommands:\n",
          to);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n  remat COMMAND --help   the options of a command, with an example\n"
          "  remat --version        the version\n\n"
          "Example: remat plan profile.json --budget 64MiB\n\n"
          "Exit codes: 0 done, 1 internal error, 2 wrong usage, 3 bad input file, 4 infeasible budget,\n"
          "5 out of memory, 6 input/output, 7 a check failed.\n",
          to);
}

static void warn(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "remat: warning: %s\n", message);
}

static int run(const struct command *command, int argc, char **argv)
{
    char name[64];
    snprintf(name, sizeof name, "remat %s", command->name);
    argv[0] = name; /* argp calls the program by this name in its messages */
    remat_context *context;
    if (remat_context_create(NULL, &context) != REMAT_OK) {
        fputs("remat: out of memory\n", stderr);
        return REMAT_NO_MEMORY;
    }
    remat_context_on_warning(context, warn, NULL);
    int code = command->run(context, argc, argv);
    remat_context_destroy(context);
    /* A full disk may show only now; a closed pipe is the reader's choice. */
    if (fflush(stdout) != 0 && code == 0) {
        fputs("remat: writing to standard output failed\n", stderr);
        code = REMAT_IO;
    }
    return code;
}

/* Waiting threads of the OpenMP library spin for long by default: on a machine that others use as well that makes a step
 * many times slower. A short spin is as fast on an idle machine. The library reads this before main runs, so the program
 * starts itself once more; who has set one of these variables keeps it. */
static void wait_politely(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT"))
        return;
    if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0)
        execv("/proc/self/exe", argv); /* where this fails, everything works all the same */
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return REMAT_INVALID;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("remat %s\n", remat_version());
        return 0;
    }
    wait_politely(argv);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, argv[1]) == 0)
            return run(&commands[i], argc - 1, argv + 1);
    fprintf(stderr, "remat: there is no command '%s'; 'remat --help' lists them\n", argv[1]);
    return REMAT_INVALID;
}
