/* Which proposal of cuBLASLt each matrix product uses, as a text for profiles:
 *
 *     cublasLt 130100; 50304 1024 2048 50304 1024 1024 1 2 0 16 4; ...
 *
 * The version, and for each product the ten numbers that determine it and the number of the proposal, counted from 0. */
#ifndef REMAT_BACKEND_CUDA_CUDA_CHOICES_H
#define REMAT_BACKEND_CUDA_CUDA_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What determines the algorithm of a product. No padding: it is compared as bytes. */
typedef struct product_key {
    uint64_t m, n, k, lda, ldb, ldc;
    uint32_t transpose_a, transpose_b, accumulate, has_bias;
    uint32_t type, c_type, alignment, derives;
} product_key;

enum { LONGEST_CHOICE = 256 }; /* in bytes, with the end of the text */

/* Each writes at most LONGEST_CHOICE bytes and returns how many, without the end. */
size_t cuda_choices_begin(size_t version, char *text);
size_t cuda_choice_write(const product_key *key, int choice, char *text);

/* Read from `at`, and move it on. False: this is no such text. */
bool cuda_choices_open(const char **at, uint64_t *version);
bool cuda_choice_read(const char **at, product_key *key, int *choice);

#endif
