/* Readers before texts that are damaged: each beginning of a text, and JSON with values of other kinds. */
#ifndef TESTS_DAMAGED_TEXT_H
#define TESTS_DAMAGED_TEXT_H

#include "support/fixture.h"

/* Reads a text and gives back what it made of it. */
typedef remat_status (*text_reader)(remat_context *context, const char *text, void *user);

/* Each beginning of the text is read. A reader takes it or refuses it as REMAT_BAD_INPUT with a message that has `part` in
 * it. Returns how many it refused. */
unsigned expect_beginnings_judged(fixture *f, const char *text, text_reader read, void *user, const char *part);

/* Each key and value of a JSON text, replaced by values of every kind. */
unsigned expect_other_values_judged(fixture *f, const char *json, text_reader read, void *user, const char *part);

#endif
