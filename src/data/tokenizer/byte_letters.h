/* The letters that stand for bytes in the tokens of byte-level tokenizers: as they are for the visible characters of
 * Latin-1, and the letters from U+0100 on for all others. */
#ifndef REMAT_DATA_TOKENIZER_BYTE_LETTERS_H
#define REMAT_DATA_TOKENIZER_BYTE_LETTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The code point of the letter of a byte. */
uint32_t byte_letter(unsigned char byte);
/* The byte of a letter; -1: it stands for none. */
int byte_of_letter(uint32_t code);

/* Turns letters, well-formed UTF-8, to the bytes that they stand for, which are no more. Returns false, and writes nothing
 * useful, where one of them stands for none. */
bool byte_letters_to_bytes(const char *text, size_t length, unsigned char *bytes, size_t *count);

#endif
