#include "terminal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_is_output(void)
{
    return isatty(STDOUT_FILENO);
}

int terminal_columns(int descriptor)
{
    const char *text = getenv("COLUMNS");
    long columns = text ? strtol(text, NULL, 10) : 0;
    struct winsize size;
    if (columns <= 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    return columns > 0 && columns <= INT_MAX ? (int)columns : 80;
}

int terminal_width(void)
{
    int columns = terminal_columns(STDOUT_FILENO);
    return columns < 50 ? 50 : columns > 200 ? 200 : columns;
}

bool terminal_has_colours(void)
{
    const char *no = getenv("NO_COLOR");
    return terminal_is_output() && !(no && *no);
}

/* The program does not call setlocale, so that numbers look the same everywhere; the variables are read in the order in
 * which setlocale would. */
bool terminal_has_blocks(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}
