/* The figures of a training, as text and as JSON, for `remat plan`, `fit` and `train`. */
#ifndef REMAT_CLI_RUN_TEXT_H
#define REMAT_CLI_RUN_TEXT_H

#include "command.h"

/* "transformer, 18,914,304 parameters, batch 4 x 2" without the end of the line; with frozen ones: "(4,399,104 trained)" behind them. */
void run_text_title(FILE *to, const remat_trainer_figures *figures);

/* The table of where the bytes go; the sum is total_bytes. */
void run_text_memory(FILE *to, const remat_trainer_figures *figures);

/* What a training takes that keeps everything: all activations, and mapped weights that are not dropped. */
uint64_t run_text_keep_all(const remat_trainer_figures *figures);

/* How many layers are recomputed, what that saves and what it costs, or why it saves nothing. `timed`: costs were
 * measured, so they are times. */
void run_text_plan(FILE *to, const remat_trainer_figures *figures, bool timed);

/* The end of a training: what was predicted against what was measured. */
void run_text_truth(FILE *to, const remat_trainer_figures *figures, const remat_run_result *result, bool timed);

/* The figures as JSON members, with commas between but none behind the last. */
void run_text_json(FILE *to, const remat_trainer_figures *figures, bool timed);
void run_text_json_number(FILE *to, const char *before, const char *key, double value); /* null where not finite */
void run_text_json_letters(FILE *to, const char *text);                                 /* escaped, without quotes */
void run_text_json_quoted(FILE *to, const char *text);                                  /* with its quotes */
void run_text_json_text(FILE *to, const char *before, const char *key, const char *text);

#endif
