/* The stages of --shard. */
#ifndef CLI_SHARD_OPTION_H
#define CLI_SHARD_OPTION_H

#include <argp.h>

#include <remat/train.h>

enum { SHARD_STAGES = REMAT_SHARD_WEIGHTS + 1 };
extern const char *const shard_names[SHARD_STAGES];

/* Ends the program with a message where it is none of them. */
remat_shard shard_parse(struct argp_state *state, const char *text);

#endif
