/* Trainings that are ended by signals at random moments. */
#ifndef REMAT_TESTS_KILLS_H
#define REMAT_TESTS_KILLS_H

/* Ends trainings early `count` times, with SIGKILL every second time and otherwise with a signal after which they save. What is
 * left must go on to the bits of a training that was never killed. Prints what does not, and returns how often. */
unsigned long long kills_do(unsigned long long count, unsigned long long seed);

#endif
