/* Remat: train neural networks in the memory you have. This header includes all others; read them in this order. */
#ifndef REMAT_H
#define REMAT_H

#include <remat/status.h>       /* what calls return */
#include <remat/context.h>      /* errors, memory, warnings */
#include <remat/units.h>        /* "64KiB" */
#include <remat/random.h>       /* numbers that can be drawn again */
#include <remat/dtype.h>        /* the types of numbers that tensors hold */
#include <remat/profile.h>      /* what layers cost */
#include <remat/schedule.h>     /* steps, and what they come to */
#include <remat/revolve.h>      /* checkpointing with a number of slots */
#include <remat/plan.h>         /* which layers to keep */
#include <remat/sweep.h>        /* the whole curve of cost over memory */
#include <remat/arena.h>        /* offsets for tensors in one piece of memory */
#include <remat/store.h>        /* where a kept activation lives: memory, 16 bits, disk */
#include <remat/checkpointer.h> /* keep some activations of your own forward, recompute the others */
#include <remat/tape.h>         /* your own forward and backward, driven by a plan in one arena */
#include <remat/model.h>        /* named layers, from calls or an INI file */
#include <remat/train.h>        /* training within a budget, and using what was trained */
#include <remat/report.h>       /* a page to look at */
#include <remat/doctor.h>       /* what was found on this machine */

#ifdef __cplusplus
extern "C" {
#endif

#define REMAT_VERSION_MAJOR 0
#define REMAT_VERSION_MINOR 1
#define REMAT_VERSION_PATCH 0

/* The version of the library in use, such as "0.1.0". */
const char *remat_version(void);

#ifdef __cplusplus
}
#endif
#endif
