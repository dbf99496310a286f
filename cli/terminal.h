/* What standard output is: a terminal or not, how wide, whether it takes colours and letters beyond ASCII. */
#ifndef REMAT_CLI_TERMINAL_H
#define REMAT_CLI_TERMINAL_H

#include <stdbool.h>

bool terminal_is_output(void);

/* Columns: of COLUMNS where that is set, of the terminal otherwise, 80 where there is none; within 50 and 200. */
int terminal_width(void);

/* On a terminal, unless NO_COLOR is set and not empty. */
bool terminal_has_colours(void);

/* Whether the locale of the environment says UTF-8. */
bool terminal_has_blocks(void);

#endif
