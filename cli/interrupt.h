/* Signals that end a program, while something runs that must not be lost. */
#ifndef REMAT_CLI_INTERRUPT_H
#define REMAT_CLI_INTERRUPT_H

/* From here on the first SIGINT (Ctrl-C), SIGTERM or SIGHUP is only noted, and the run ends after its step. A second one
 * ends the program at once. A pipe that nobody reads any more and a file that grows too large are failed writes. */
void interrupt_watch(void);

/* The signal that was received; 0 if none. */
int interrupt_signal(void);

#endif
