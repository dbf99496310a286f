/* The command that goes on with a saved training. */
#ifndef REMAT_CLI_GO_ON_H
#define REMAT_CLI_GO_ON_H

#include <stdint.h>
#include <stdio.h>

/* Prints the command line that was given, as `remat train ...`, changed so that it goes on with the training in `saved`:
 * options that only start a training are left out. `steps` not 0: with so many steps in all. */
void go_on_print(FILE *to, int argc, char *const *argv, const char *saved, uint64_t steps);

#endif
