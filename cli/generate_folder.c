#include "generate_folder.h"

#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "shown.h"
#include "terminal.h"

static bool emit(void *user, const char *text, size_t bytes)
{
    const bool *is_terminal = user;
    if (!*is_terminal) {
        fwrite(text, 1, bytes, stdout);
    } else { /* no control characters but newlines and tabs */
        char *copy = strndup(text, bytes);
        if (copy)
            shown_lines(stdout, copy);
        free(copy);
    }
    fflush(stdout);
    return !ferror(stdout);
}

static void print_memory(const remat_generator *generator)
{
    remat_generator_figures figures;
    char total[REMAT_SIZE_TEXT], weights[REMAT_SIZE_TEXT], cache[REMAT_SIZE_TEXT], arena[REMAT_SIZE_TEXT];
    char mapped[REMAT_SIZE_TEXT];
    remat_generator_get_figures(generator, &figures);
    remat_size_print(figures.mapped_bytes, mapped);
    fprintf(stderr, "memory %s: weights %s%s%s%s, cache of %llu tokens %s, arena %s\n",
            remat_size_print(figures.total_bytes, total), remat_size_print(figures.weight_bytes, weights),
            figures.mapped_bytes ? " (" : "", figures.mapped_bytes ? mapped : "",
            figures.mapped_bytes ? " of it mapped from the folder)" : "", (unsigned long long)figures.cache,
            remat_size_print(figures.cache_bytes, cache), remat_size_print(figures.arena_bytes, arena));
}

remat_status generate_folder(remat_context *context, const char *folder, const remat_generator_options *options,
                             const remat_text_options *text, bool quiet)
{
    remat_generator *generator = NULL;
    bool is_terminal = terminal_is_output();
    remat_status status = remat_generator_create(context, folder, options, &generator);
    if (status == REMAT_OK) {
        if (!quiet)
            print_memory(generator);
        if (text->prompt && !text->chat)
            emit(&is_terminal, text->prompt, strlen(text->prompt));
        status = remat_generator_write(generator, text, emit, &is_terminal);
        putchar('\n');
        fflush(stdout); /* before a message */
    }
    if (status != REMAT_OK)
        command_fail(context, status);
    remat_generator_destroy(generator);
    return status;
}
