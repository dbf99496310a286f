/* The angles of rotary position embeddings, with the ways in which models stretch them for longer sequences. */
#ifndef REMAT_BACKEND_ROTARY_H
#define REMAT_BACKEND_ROTARY_H

#include <stddef.h>

typedef enum rotary_scaling {
    ROTARY_PLAIN,
    ROTARY_LINEAR, /* all frequencies are divided by `factor` */
    ROTARY_LLAMA3, /* only those of long waves, with a smooth change between `low` and `high` */
    ROTARY_YARN,   /* the same with a straight line over the pairs that turn `high` to `low` times within `length` */
} rotary_scaling;

typedef struct rotary_angles {
    rotary_scaling scaling;
    double theta; /* pair i of n has the frequency theta^(-i / n) */
    double factor;
    double low, high; /* of llama3 and yarn: turns within `length` */
    double length;    /* of the sequences before they were stretched */
} rotary_angles;

/* The frequency of pair `i` in a head of `size` values: the angle between two positions that follow each other. It is rounded
 * to fp32, like the angles, as other programs do it. */
float rotary_frequency(const rotary_angles *angles, size_t size, size_t i);

#endif
