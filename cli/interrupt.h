/* Ctrl-C and SIGTERM as a wish to end soon: what runs may end well. A second one ends the program at once. */
#ifndef REMAT_CLI_INTERRUPT_H
#define REMAT_CLI_INTERRUPT_H

/* From here on the first of these signals is only noted. */
void interrupt_watch(void);

/* The signal that came; 0 where none did. */
int interrupt_signal(void);

#endif
