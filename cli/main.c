#include "command.h"
#include "did_you_mean.h"
#include "shown.h"
#include "waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command {
    const char *name, *summary;
    command_fn run;
} commands[] = {
    {"train", "train a model within a budget", command_train},
    {"eval", "evaluate trained weights: loss, accuracy and others", command_eval},
    {"predict", "run a trained model on samples", command_predict},
    {"convert", "convert weights between Remat and PyTorch", command_convert},
    {"generate", "continue a text with a trained model", command_generate},
    {"tokenizer", "train tokenizers, and use them", command_tokenizer},
    {"fit", "say whether a model fits a budget, and which budget it needs", command_fit},
    {"profile", "time every layer of a model", command_profile},
    {"bench", "time every layer and phase against the limits of the machine", command_bench},
    {"summary", "show the layers of a model, their shapes and bytes", command_summary},
    {"plan", "decide which layers to keep and which to recompute", command_plan},
    {"sweep", "show the whole curve of cost over memory", command_sweep},
    {"check", "replay a plan and check its figures", command_check},
    {"arena", "place tensors in one arena", command_arena},
    {"report", "make an HTML page: memory over time, the curve, the layers", command_report},
    {"layers", "list the layer types and their properties", command_layers},
    {"doctor", "show the processor, memory, limits and libraries of this machine", command_doctor},
};

enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_help(FILE *to)
{
    fputs("Usage: remat COMMAND [OPTION...] FILE\n"
          "Train neural networks in the memory you have.\n\nCommands:\n",
          to);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\n  remat help COMMAND     the options of a command, with an example; same as remat COMMAND --help\n"
          "  remat version          the version; same as remat --version\n\n"
          "Where a command takes MODEL.ini, it also takes a folder in Hugging Face's layout.\n\n"
          "Example: remat plan profile.json --budget 64MiB\n\n"
          "Exit codes: 0 done, 1 internal error, 2 wrong usage, 3 bad input file, 4 infeasible budget,\n"
          "5 out of memory, 6 input/output, 7 a check failed, 8 the training diverged; 130, 143 and 129 after\n"
          "Ctrl-C, SIGTERM and SIGHUP.\n",
          to);
}

/* A command may make the same thing several times. Its warning is printed once. */
static void warn(void *user, const char *message)
{
    static char last[1024];
    (void)user;
    if (strncmp(message, last, sizeof last - 1) == 0)
        return;
    snprintf(last, sizeof last, "%s", message);
    waiting_clear();
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
    waiting_end();
    remat_context_destroy(context);
    return code;
}

/* ---- standard streams ---- */

/* A file that the program opens must not become its standard output or error: where the caller closed one of them,
 * something takes the number that cannot be read or written. */
static void hold_standard_descriptors(void)
{
    for (int number = 0; number <= 2; number++)
        if (fcntl(number, F_GETFD) == -1 && errno == EBADF)
            open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY); /* the lowest number that is free: this one */
}

/* A full disk may show only now. Runs on every way out of the program, also that of argp after --help. */
static void check_standard_output(void)
{
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return;
    fprintf(stderr, "remat: writing to standard output failed: %s\n", strerror(errno));
    _exit(REMAT_IO);
}

/* ---- names ---- */

static bool is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static int refuse_name(const char *typed)
{
    did_you_mean words = {.typed = typed};
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        did_you_mean_try(&words, commands[i].name);
    fprintf(stderr, "remat: there is no command '%s'; ", shown(typed));
    if (words.nearest)
        fprintf(stderr, "did you mean %s? ", words.nearest);
    fputs("'remat --help' lists them\n", stderr);
    return REMAT_INVALID;
}

static int run_named(int argc, char **argv)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, argv[0]) == 0)
            return run(&commands[i], argc, argv);
    return refuse_name(argv[0]);
}

int main(int argc, char **argv)
{
    hold_standard_descriptors();
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of its write, which cleans up and says so */
    atexit(check_standard_output);
    if (argc < 2) {
        print_help(stderr);
        return REMAT_INVALID;
    }
    static char help[] = "--help";
    if (is_one_of(argv[1], help, "-h", "help")) {
        char *wanted[] = {argc > 2 ? argv[2] : NULL, help, NULL};
        if (wanted[0])
            return run_named(2, wanted);
        print_help(stdout);
        return 0;
    }
    if (is_one_of(argv[1], "--version", "-V", "version")) {
        printf("remat %s\n", remat_version());
        return 0;
    }
    if (argc > 2 && strcmp(argv[2], "-h") == 0)
        argv[2] = help;
    return run_named(argc - 1, argv + 1);
}
