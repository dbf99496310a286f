#include "report/page_parts.h"

/* The assembler reads the files as they are: no program of its own is needed to turn them into C. */
#define EMBED(name, file)                                                                              \
    __asm__(".section .rodata\n"                                                                       \
            ".globl " #name "\n.hidden " #name "\n.globl " #name "_end\n.hidden " #name "_end\n" #name \
            ":\n.incbin \"" file "\"\n" #name "_end:\n.byte 0\n.previous\n")

EMBED(page_head, REMAT_PAGE_FOLDER "/page_head.html");
EMBED(page_tail, REMAT_PAGE_FOLDER "/page_tail.html");
