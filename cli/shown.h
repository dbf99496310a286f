/* Names from files and from the command line, as they are printed to people. */
#ifndef REMAT_CLI_SHOWN_H
#define REMAT_CLI_SHOWN_H

#include <stdio.h>

/* The text without anything that a terminal would act on, by remat_text_escape. The result is the text itself where that
 * is harmless, else a copy that lives as long as the program. Not for JSON, which has escapes of its own. */
const char *shown(const char *text);

/* Writes a text of whole lines: newlines and tabs stay, all else is escaped. */
void shown_lines(FILE *to, const char *text);

#endif
