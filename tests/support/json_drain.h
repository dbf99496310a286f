/* Reading a JSON text to its end with the library's reader. */
#ifndef TESTS_JSON_DRAIN_H
#define TESTS_JSON_DRAIN_H

#include "support/fixture.h"

#include "base/json_reader.h"

typedef struct json_source {
    FILE *stream;
    json_reader *reader;
} json_source;
json_source json_source_open(fixture *f, const void *bytes, size_t length);
void json_source_close(json_source *source);

/* Takes tokens until the text ends or is wrong. */
remat_status json_drain(fixture *f, const void *bytes, size_t length);
remat_status json_drain_text(fixture *f, const char *text);

/* Takes one token, which must be of this kind. */
json_token json_expect(fixture *f, json_source *source, json_kind kind);

#endif
