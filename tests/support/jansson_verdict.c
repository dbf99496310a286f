#include "support/jansson_verdict.h"

#include <jansson.h>

bool jansson_accepts(const char *text, size_t length)
{
    json_t *tree = json_loadb(text, length, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    json_decref(tree);
    return tree != NULL;
}

bool jansson_accepts_string(const char *text)
{
    json_t *string = json_string(text);
    json_decref(string);
    return string != NULL;
}
