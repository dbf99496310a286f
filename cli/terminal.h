/* What the outputs are: a terminal or not, how wide, whether it takes colours and letters beyond ASCII. */
#ifndef REMAT_CLI_TERMINAL_H
#define REMAT_CLI_TERMINAL_H

#include <stdbool.h>

bool terminal_is_output(void);

/* Columns of the terminal behind a descriptor: of COLUMNS where that is set, 80 where there is no terminal. */
int terminal_columns(int descriptor);

/* The same for standard output, within 50 and 200. */
int terminal_width(void);

/* On a terminal, unless NO_COLOR is set and not empty. */
bool terminal_has_colours(void);

/* Whether the locale of the environment says UTF-8. */
bool terminal_has_blocks(void);

#endif
