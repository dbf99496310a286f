/* What MPI moves between the ranks of a machine, as remat fit --network takes it: mpicc -O2 bench/mpi/mpi_network.c && mpirun -np 2 ./a.out
 * Every rank sends to the next one while it receives from the one before. Large messages come from changing places of a buffer that no
 * cache holds, as gradients do. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 4 << 20, PLACES = 64, SMALL_ROUNDS = 20000, LARGE_ROUNDS = 200 };

static double seconds_of(int bytes, int rounds, char *from, char *to)
{
    int rank, count;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        const size_t place = (size_t)(i % PLACES) * LARGE;
        MPI_Sendrecv(from + place, bytes, MPI_CHAR, (rank + 1) % count, 0, to + place, bytes, MPI_CHAR,
                     (rank + count - 1) % count, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return (MPI_Wtime() - began) / rounds;
}

int main(int argc, char **argv)
{
    int rank;
    char *from = malloc((size_t)PLACES * LARGE), *to = malloc((size_t)PLACES * LARGE);
    if (!from || !to)
        return 1;
    memset(from, 1, (size_t)PLACES * LARGE);
    memset(to, 2, (size_t)PLACES * LARGE);
    MPI_Init(&argc, &argv);
    const double small = seconds_of(8, SMALL_ROUNDS, from, to), large = seconds_of(LARGE, LARGE_ROUNDS, from, to);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("%.1fGB/s,%.1fus\n", LARGE / large / 1e9, 1e6 * small);
    MPI_Finalize();
    free(from);
    free(to);
    return 0;
}
