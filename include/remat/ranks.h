/* Remat: several processes that train one model together. Each process is a rank.
 *
 *     remat_communicator *ranks;
 *     remat_communicator_open(context, NULL, &ranks);
 *     options.communicator = ranks;
 *     remat_trainer_create(model, &options, &trainer);
 *     remat_status status = remat_trainer_run(trainer, &hooks, &result);
 *     if (status != REMAT_OK && status != REMAT_DIVERGED)
 *         remat_communicator_abort(ranks, status);
 *     remat_trainer_destroy(trainer);
 *     remat_communicator_close(ranks);
 *
 * Started by `mpirun -np 4 PROGRAM`, four processes share the micro-batches of each step. Open MPI is loaded when it is
 * needed; a process without a launcher is a single rank and does not need it. See docs/ranks.md.
 *
 * All ranks must make the same calls in the same order: creating a trainer, loading, steps, validations, runs and
 * saving wait for the other ranks. If a call fails on one rank only, the others keep waiting, so end them with
 * remat_communicator_abort. Only REMAT_DIVERGED is returned on all ranks.
 *
 * Threads: a communicator and its trainers may be used by one thread at a time. */
#ifndef REMAT_RANKS_H
#define REMAT_RANKS_H

#include <stddef.h>

#include <remat/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct remat_communicator remat_communicator;

/* Opens a communicator. `mpi_comm` is the address of an MPI_Comm of Open MPI; its ranks take part. NULL: all processes that
 * the launcher started, or this process alone if there was none. MPI is initialized if it is not yet. A communicator of the
 * caller is duplicated. REMAT_INVALID: Open MPI's library is not installed, or MPI has ended already; REMAT_IO: MPI fails;
 * REMAT_NO_MEMORY. */
remat_status remat_communicator_open(remat_context *context, const void *mpi_comm, remat_communicator **communicator);

/* Closes a communicator. Closing the last one finalizes MPI if Remat initialized it; then no other can be opened. NULL:
 * nothing happens. */
void remat_communicator_close(remat_communicator *communicator);

uint64_t remat_communicator_rank(const remat_communicator *communicator); /* from 0 */
uint64_t remat_communicator_size(const remat_communicator *communicator);

/* "mpi", or "none" for a process alone. */
const char *remat_communicator_name(const remat_communicator *communicator);

/* How many ranks run on this machine, this one included. */
uint64_t remat_communicator_local_size(const remat_communicator *communicator);

/* How long a rank waits for others before its call fails with REMAT_IO. The default is 600 seconds. */
void remat_communicator_set_timeout(remat_communicator *communicator, double seconds);

/* All ranks exchange their status: `mine`, and why. Returns REMAT_OK if all have REMAT_OK. Otherwise all ranks get the
 * status and the text of the first rank that has another, and its number. `rank` and `text` may be NULL. REMAT_IO also
 * if the ranks cannot be reached. */
remat_status remat_communicator_agree(remat_communicator *communicator, remat_status mine, const char *why,
                                      uint64_t *rank, char *text, size_t text_size);

/* Ends all ranks at once, with this status as exit code; does not return. It closes nothing and prints nothing. */
void remat_communicator_abort(remat_communicator *communicator, remat_status status) __attribute__((noreturn));

/* Open MPI's own text about its version, such as "Open MPI v4.1.4, ..."; NULL if it is not installed. Safe from any
 * thread. */
const char *remat_mpi_version(void);

/* The version of NCCL, by which ranks with GPUs exchange tensors, such as "2.28.9"; NULL if it is not installed, or cannot be used. Safe
 * from any thread. */
const char *remat_nccl_version(void);

#ifdef __cplusplus
}
#endif
#endif
