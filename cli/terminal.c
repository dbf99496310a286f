#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_is_output(void)
{
    return isatty(STDOUT_FILENO);
}

static int within(long columns)
{
    return columns < 50 ? 50 : columns > 200 ? 200 : (int)columns;
}

int terminal_width(void)
{
    const char *text = getenv("COLUMNS");
    long columns = text ? strtol(text, NULL, 10) : 0;
    struct winsize size;
    if (columns <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    return within(columns > 0 ? columns : 80);
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
