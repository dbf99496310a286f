#include "shown.h"

#include <stdlib.h>
#include <string.h>

#include <remat/units.h>

typedef struct copy {
    struct copy *next;
    char text[];
} copy;

static copy *copies;

static void free_copies(void)
{
    while (copies) {
        copy *next = copies->next;
        free(copies);
        copies = next;
    }
}

const char *shown(const char *text)
{
    size_t length = remat_text_escape(text, NULL, 0);
    if (length == strlen(text)) /* every escape is longer than what it stands for */
        return text;
    copy *made = malloc(sizeof *made + length + 1);
    if (!made)
        return "?";
    if (!copies)
        atexit(free_copies);
    remat_text_escape(text, made->text, length + 1);
    made->next = copies;
    copies = made;
    return made->text;
}

void shown_lines(FILE *to, const char *text)
{
    while (*text) {
        char piece[256], escaped[8 * sizeof piece];
        size_t length = strcspn(text, "\n\t"), taken = length < sizeof piece ? length : sizeof piece - 1;
        while (taken < length && taken > 4 && ((unsigned char)text[taken] & 0xc0) == 0x80)
            taken--; /* no character is cut */
        memcpy(piece, text, taken);
        piece[taken] = '\0';
        remat_text_escape(piece, escaped, sizeof escaped);
        fputs(escaped, to);
        text += taken;
        if (taken == length && *text)
            fputc(*text++, to);
    }
}
