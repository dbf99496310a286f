#include "support/jansson_verdict.h"

#include <jansson.h>

bool jansson_accepts(const char *text, size_t length)
{
    json_t *tree = json_loadb(text, length, JSON_DECODE_ANY, NULL);
    json_decref(tree);
    return tree != NULL;
}
