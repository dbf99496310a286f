/* Reading values for types that have a property of their own kind. */
#ifndef REMAT_LAYERS_LAYER_OPTIONS_H
#define REMAT_LAYERS_LAYER_OPTIONS_H

#include "layers/layer.h"

/* "3" or "3,5" as two counts; false where the text is something else. */
bool layer_pair_read(const char *text, uint64_t pair[2]);

/* "key=number" with all its digits and a point, in any locale: for the properties of parts. */
void layer_number_write(const char *key, double number, char *text, size_t size);

/* What a property may be, for messages and help: "a whole number from 1 to 64", "one of relu, gelu". Returns `text`. */
enum { LAYER_ALLOWED_TEXT = 512 };
const char *layer_property_allowed(const layer_property *property, char text[LAYER_ALLOWED_TEXT]);

#endif
