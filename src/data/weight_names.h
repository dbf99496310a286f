/* How another program calls the parameters of a model: a text file with a rule in each line.
 *
 *     # ours = theirs
 *     fc1 = classifier.0                                    a layer: for all its parameters
 *     fc1.weight = classifier.0.weight                      a parameter
 *     h{i}.up = transformer.h.{i}.mlp.c_fc transposed       {i} is a number; the matrix is stored the other way round
 *     * = model.*                                           all that no other rule names
 *
 * '#' begins a comment. A rule for a parameter comes before one for its layer, and that before '*'. */
#ifndef REMAT_DATA_WEIGHT_NAMES_H
#define REMAT_DATA_WEIGHT_NAMES_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

typedef struct weight_names weight_names;

/* REMAT_BAD_INPUT, with the line: a line is no rule. REMAT_IO, REMAT_NO_MEMORY. On failure *names is NULL. */
remat_status weight_names_load(remat_context *context, const char *path, weight_names **names);
remat_status weight_names_read(remat_context *context, FILE *stream, const char *path, weight_names **names);
void weight_names_destroy(weight_names *names); /* NULL is fine */

/* Their name for `ours`, a parameter or a layer, by the first rule that names it; false if none does. `names` may be
 * NULL. The text is cut off where it is longer than WEIGHT_NAME_TEXT. */
enum { WEIGHT_NAME_TEXT = 2048 };
bool weight_names_find(const weight_names *names, const char *ours, char theirs[WEIGHT_NAME_TEXT], bool *transposed);

/* The same by the rule '*'. */
bool weight_names_find_any(const weight_names *names, const char *ours, char theirs[WEIGHT_NAME_TEXT]);

#endif
