#include "backend/cuda/cuda_choices.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_NUMBERS = 10 };
static const char first_word[] = "cublasLt";

size_t cuda_choices_begin(size_t version, char *text)
{
    return (size_t)snprintf(text, LONGEST_CHOICE, "%s %zu", first_word, version);
}

size_t cuda_choice_write(const product_key *key, int choice, char *text)
{
    const uint32_t flags =
        key->transpose_a | key->transpose_b << 1 | key->accumulate << 2 | key->has_bias << 3 | key->derives << 4;
    const uint64_t numbers[KEY_NUMBERS] = {key->m,   key->n, key->k,    key->lda,    key->ldb,
                                           key->ldc, flags,  key->type, key->c_type, key->alignment};
    size_t used = 1;
    text[0] = ';';
    for (size_t i = 0; i < KEY_NUMBERS; i++)
        used += (size_t)snprintf(text + used, LONGEST_CHOICE - used, " %" PRIu64, numbers[i]);
    return used + (size_t)snprintf(text + used, LONGEST_CHOICE - used, " %d", choice);
}

static bool read_number(const char **at, uint64_t *number)
{
    char *end;
    if (**at != ' ' || (*at)[1] < '0' || (*at)[1] > '9')
        return false;
    errno = 0;
    *number = strtoull(*at + 1, &end, 10);
    *at = end;
    return errno == 0;
}

bool cuda_choices_open(const char **at, uint64_t *version)
{
    if (strncmp(*at, first_word, strlen(first_word)) != 0)
        return false;
    *at += strlen(first_word);
    return read_number(at, version);
}

bool cuda_choice_read(const char **at, product_key *key, int *choice)
{
    uint64_t n[KEY_NUMBERS], last;
    if (*(*at)++ != ';')
        return false;
    for (size_t i = 0; i < KEY_NUMBERS; i++)
        if (!read_number(at, &n[i]))
            return false;
    if (!read_number(at, &last) || last > INT_MAX || n[6] > 31 || n[7] > UINT32_MAX || n[8] > UINT32_MAX ||
        n[9] > UINT32_MAX)
        return false;
    *key = (product_key){.m = n[0],
                         .n = n[1],
                         .k = n[2],
                         .lda = n[3],
                         .ldb = n[4],
                         .ldc = n[5],
                         .transpose_a = n[6] & 1,
                         .transpose_b = n[6] >> 1 & 1,
                         .accumulate = n[6] >> 2 & 1,
                         .has_bias = n[6] >> 3 & 1,
                         .type = (uint32_t)n[7],
                         .c_type = (uint32_t)n[8],
                         .alignment = (uint32_t)n[9],
                         .derives = n[6] >> 4 & 1};
    *choice = (int)last;
    return true;
}
