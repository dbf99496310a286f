/* Checksums of weights files, in two texts of the metadata. Each is a 64-bit XXH3 in 16 hexadecimal digits.
 *
 *     remat_tensor_checksums   of the bytes of every tensor, one after the other in the order of the tensors' names
 *     remat_checksum           of all that the header says: the sum, modulo 2^64, of a hash for each other text of the
 *                              metadata and for each tensor
 *
 * Neither depends on where things are in the file: a program that writes the same content in another order may keep
 * them. */
#ifndef REMAT_DATA_SAFETENSORS_CHECKSUM_H
#define REMAT_DATA_SAFETENSORS_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#define CHECKSUM_KEY         "remat_checksum"
#define CHECKSUM_TENSORS_KEY "remat_tensor_checksums"

enum { CHECKSUM_DIGITS = 16 };

uint64_t checksum_of_bytes(const void *bytes, size_t count);

/* Of a text of the metadata: the key and the value, with a NUL behind each. */
uint64_t checksum_of_text(const char *key, const char *value);

/* Of what the header says of a tensor: its name and its type with a NUL behind each, and its dimensions, eight bytes
 * each. */
uint64_t checksum_of_tensor(const char *name, const char *dtype, const uint64_t *dims, uint32_t rank);

void checksum_print(uint64_t checksum, char text[CHECKSUM_DIGITS + 1]);

#endif
