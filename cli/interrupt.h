/* The first Ctrl-C or SIGTERM asks the program to end, so that it can save before. A second one ends it at once. */
#ifndef REMAT_CLI_INTERRUPT_H
#define REMAT_CLI_INTERRUPT_H

/* From here on the first of these signals is only noted. */
void interrupt_watch(void);

/* The signal that was received; 0 if none. */
int interrupt_signal(void);

#endif
