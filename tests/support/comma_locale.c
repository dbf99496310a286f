#include "support/comma_locale.h"

#include "support/cases.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file LC_NUMERIC as localedef writes it: a number that says what it is, how many items it has, where each begins.
 * The items: the point, the separator of thousands, how many digits go between two of them, the first two as wide
 * letters, the name of the character set. */
enum { ITEMS = 6, ITEM_ROOM = 8, MAGIC = 0x20031115 };

typedef struct numeric_file {
    uint32_t magic, count, offsets[ITEMS];
    char items[ITEMS][ITEM_ROOM];
} numeric_file;

static void write_numeric(const char *path, const char *point)
{
    numeric_file file = {.magic = MAGIC ^ LC_NUMERIC, .count = ITEMS};
    const uint32_t wide[2] = {',', '.'};
    for (uint32_t i = 0; i < ITEMS; i++)
        file.offsets[i] = (uint32_t)(offsetof(numeric_file, items) + i * ITEM_ROOM);
    assert_true(strlen(point) < ITEM_ROOM);
    strcpy(file.items[0], point);
    strcpy(file.items[1], ".");
    strcpy(file.items[2], "\3\3");
    memcpy(file.items[3], &wide[0], sizeof wide[0]);
    memcpy(file.items[4], &wide[1], sizeof wide[1]);
    strcpy(file.items[5], "UTF-8");
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_int_equal(fwrite(&file, sizeof file, 1, stream), 1);
    assert_int_equal(fclose(stream), 0);
}

/* The C library keeps what it has loaded: the file can go. */
void comma_locale_set(const char *point)
{
    static unsigned made;
    char root[] = "/tmp/remat-locale-XXXXXX", name[16], folder[64], path[96], shown[32];
    assert_non_null(mkdtemp(root));
    snprintf(name, sizeof name, "comma%u", made++);
    snprintf(folder, sizeof folder, "%s/%s", root, name);
    snprintf(path, sizeof path, "%s/LC_NUMERIC", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    write_numeric(path, point);
    setenv("LOCPATH", root, 1);
    bool loaded = setlocale(LC_NUMERIC, name) != NULL;
    unsetenv("LOCPATH");
    unlink(path);
    rmdir(folder);
    rmdir(root);
    assert_true(loaded);
    snprintf(shown, sizeof shown, "%.1f", 0.5);
    assert_true(shown[0] == '0' && strncmp(shown + 1, point, strlen(point)) == 0);
}

locale_t comma_locale_make(const char *point)
{
    comma_locale_set(point);
    locale_t locale = duplocale(LC_GLOBAL_LOCALE);
    assert_true(locale != (locale_t)0);
    setlocale(LC_NUMERIC, "C");
    return locale;
}
