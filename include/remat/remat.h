/* Remat: train neural networks in the memory you have. This header includes all others.
 *
 * Five rules hold for every call.
 *
 * - Errors. A call that can fail returns a remat_status. The details of the last failure are on the context
 *   (remat/context.h). The library never prints, exits or aborts.
 * - Ownership. Objects such as remat_plan are opaque. Whoever creates an object destroys it, before the objects that it
 *   was made from. Destroying NULL does nothing. A pointer that the library returns belongs to the object that it came
 *   from, unless the call says otherwise.
 * - Threads. A context, and every object made from it, may be used by one thread at a time. Different contexts may be
 *   used by different threads at the same time.
 * - Locales. Numbers are written and read with a decimal point, in files and in texts, whatever locale the program or
 *   the thread has set.
 * - Releases. A program that was compiled with the header of one release works with the shared library of every later
 *   release. It also works with an older library, as long as it uses nothing that this library does not know.
 *
 * Structs and releases. A later release may add members to a struct, always at its end. A program keeps working
 * because the library never reads or writes more of a struct than the program was compiled with:
 *
 * - Options (remat_plan_options and all others with a member struct_size): call the `_init` function first. It stores
 *   the size in struct_size and sets every member to its default. Then set the members that you need. Where a call
 *   takes options, NULL means the defaults.
 * - Other structs that a program fills in or that the library fills in (callbacks, figures, results): the call passes
 *   the size to the library.
 * - Arrays of structs that belong to the program: the call passes the size of one element.
 * - Structs that belong to the library (remat_error, remat_layer, remat_plan_figures, and all that callbacks receive):
 *   read them through the pointer that you got. They may be larger than your header says.
 * - Small structs that never change: remat_step, remat_random, remat_live_tensor and remat_checkpointer_layer.
 *
 * An older library may not know the last members of a struct. It sets them to 0 where it fills in the struct. It
 * returns REMAT_INVALID where the program has set one of them.
 *
 * Wherever a size is passed there are two functions. remat_plan_options_init(options) is inline, and is what a C or
 * C++ program calls. It calls remat_plan_options_init_sized(options, sizeof *options), which is in the library.
 * Bindings for other languages call the `_sized` function.
 *
 * Enumerations may get new values at their end, so a program should expect values that it does not know. */
#ifndef REMAT_H
#define REMAT_H

#include <remat/status.h>       /* what calls return */
#include <remat/context.h>      /* errors, memory, warnings */
#include <remat/units.h>        /* "64KiB" */
#include <remat/random.h>       /* random numbers by position, the same on every draw */
#include <remat/dtype.h>        /* the element types of tensors */
#include <remat/profile.h>      /* what the layers of a chain cost */
#include <remat/graph.h>        /* tensors and actions that are not a chain; schedules of them */
#include <remat/schedule.h>     /* the steps of a training iteration, and their peak and cost */
#include <remat/revolve.h>      /* checkpointing with a number of slots */
#include <remat/plan.h>         /* which layers to keep and which to recompute */
#include <remat/graph_plans.h>  /* schedules of graphs within a budget, and the place of every tensor */
#include <remat/sweep.h>        /* the whole curve of cost over memory */
#include <remat/arena.h>        /* offsets for tensors in one piece of memory */
#include <remat/store.h>        /* how a kept activation is stored: in memory, in 16 bits, on disk */
#include <remat/checkpointer.h> /* keep some activations of your own forward function, recompute the others */
#include <remat/tape.h>         /* your own forward and backward functions, run by a plan in one arena */
#include <remat/model.h>        /* named layers, from calls or an INI file */
#include <remat/custom_layer.h> /* layer types of your own, and the check of their gradients */
#include <remat/ranks.h>        /* several processes that train one model together */
#include <remat/train.h>        /* training within a budget, and running trained models */
#include <remat/scale.h>        /* what many ranks need, and how long their steps take */
#include <remat/evaluation.h>   /* accuracy, precision, recall and other figures of trained weights */
#include <remat/tokenizer.h>    /* texts to the tokens of language models, and back */
#include <remat/generator.h>    /* texts that language models write */
#include <remat/report.h>       /* HTML pages about plans, models and runs */
#include <remat/doctor.h>       /* what this build of the library uses */

#ifdef __cplusplus
extern "C" {
#endif

#define REMAT_VERSION_MAJOR 0
#define REMAT_VERSION_MINOR 2
#define REMAT_VERSION_PATCH 0

/* The version of the library in use, such as "0.2.0". It may differ from the version of the header. */
const char *remat_version(void);

#ifdef __cplusplus
}
#endif
#endif
