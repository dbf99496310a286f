/* How ranks work together: --shard and --reduce. */
#ifndef CLI_SHARD_OPTION_H
#define CLI_SHARD_OPTION_H

#include <argp.h>

#include <remat/train.h>

enum { SHARD_STAGES = REMAT_SHARD_WEIGHTS + 1 };
extern const char *const shard_names[SHARD_STAGES];

/* These end the program with a message where it is none of them. */
remat_shard shard_parse(struct argp_state *state, const char *text);
bool reduce_parse(struct argp_state *state, const char *text); /* whether it is fast */

#endif
