/* The example models, shrunken: the same layers in the same order, with fewer and smaller ones of each. */
#ifndef TESTS_SMALL_MODELS_H
#define TESTS_SMALL_MODELS_H

#include <remat/model.h>

/* Name of the example file at a position, such as "gpt.ini"; NULL past the end. */
const char *small_model_name(size_t position);

/* Reads examples/models/NAME with its sizes replaced. The caller destroys the model. */
remat_status small_model_load(remat_context *context, const char *name, remat_model **model);
/* The same with more lines in [Model]. */
remat_status small_model_load_with(remat_context *context, const char *name, const char *more, remat_model **model);

#endif
