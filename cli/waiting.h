/* A line on the terminal while something takes long: what is done, and for how many seconds. It appears after a second
 * and goes when it is over. Where stderr is no terminal there is none. */
#ifndef REMAT_CLI_WAITING_H
#define REMAT_CLI_WAITING_H

/* Shows `what` from now on: text that stays where it is. Another call replaces it. */
void waiting_for(const char *what);

/* Takes the line away. Does nothing where there is none. */
void waiting_end(void);

/* Takes the line away for a message on stderr; it comes back by itself. */
void waiting_clear(void);

#endif
