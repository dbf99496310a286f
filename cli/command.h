/* What the commands share. A command is one file with one function of this shape; main.c has the table. */
#ifndef REMAT_CLI_COMMAND_H
#define REMAT_CLI_COMMAND_H

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>

#include <remat/remat.h>

/* Runs the command on its own arguments; argv[0] is "remat COMMAND". Returns the exit code. */
typedef int (*command_fn)(remat_context *context, int argc, char **argv);

int command_convert(remat_context *context, int argc, char **argv);
int command_summary(remat_context *context, int argc, char **argv);
int command_plan(remat_context *context, int argc, char **argv);
int command_sweep(remat_context *context, int argc, char **argv);
int command_check(remat_context *context, int argc, char **argv);
int command_arena(remat_context *context, int argc, char **argv);
int command_report(remat_context *context, int argc, char **argv);
int command_layers(remat_context *context, int argc, char **argv);
int command_doctor(remat_context *context, int argc, char **argv);
int command_train(remat_context *context, int argc, char **argv);
int command_eval(remat_context *context, int argc, char **argv);
int command_predict(remat_context *context, int argc, char **argv);
int command_generate(remat_context *context, int argc, char **argv);
int command_bench(remat_context *context, int argc, char **argv);
int command_fit(remat_context *context, int argc, char **argv);
int command_profile(remat_context *context, int argc, char **argv);
int command_tokenizer(remat_context *context, int argc, char **argv);

/* Parses with argp in the way all commands do: wrong usage exits with 2. */
void command_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Takes the argument of a command that has only one, called `what` in its usage. */
void command_take(struct argp_state *state, const char *what, const char *argument, const char **taken);

/* Prints the failure on the context to stderr; returns the exit code. */
int command_fail(remat_context *context, remat_status status);

/* Reads a profile from a path, or from standard input where the path is "-". */
remat_status command_read_profile(remat_context *context, const char *path, remat_profile **profile);

/* Opens a file for reading, "-" being standard input; `name` is what messages call it. Says on stderr what is wrong. */
remat_status command_open(remat_context *context, const char *path, FILE **stream, const char **name);
/* Closes it. `status` is the result of reading: it is returned, and a failure is printed to stderr. */
remat_status command_close(remat_context *context, FILE *stream, remat_status status);

/* Parses an option's size or stops with a usage error. */
uint64_t command_size(struct argp_state *state, remat_context *context, const char *text);
/* The same for a count. */
uint64_t command_count(struct argp_state *state, remat_context *context, const char *text);
/* The same for the number of an option, from 1 to `most`; UINT64_MAX: any. */
uint64_t command_number(struct argp_state *state, remat_context *context, const char *option, uint64_t most,
                        const char *text);
/* And for the samples of a batch, at least 1. Where `choice` is not NULL, "auto" and "largest" set it and give 0. */
typedef enum batch_choice { BATCH_GIVEN, BATCH_FASTEST, BATCH_LARGEST } batch_choice;
uint64_t command_batch(struct argp_state *state, remat_context *context, const char *text, batch_choice *choice);
/* And for a number of threads. */
unsigned command_threads(struct argp_state *state, remat_context *context, const char *text);

#endif
