/* Reading the fields of JSON records: typed values with errors that name the field. */
#ifndef REMAT_BASE_JSON_FIELDS_H
#define REMAT_BASE_JSON_FIELDS_H

#include "base/json_reader.h"

/* Where the reader is, inside which layer, at which field; for messages. */
remat_place json_field_place(const json_reader *reader, uint64_t layer, const char *field);

/* Each reads the value that stands next and checks its kind. REMAT_BAD_INPUT at `layer` and `field`.
 * The text is good until the next call on the reader. */
remat_status json_read_count(json_reader *reader, uint64_t layer, const char *field, uint64_t *value);
remat_status json_read_bool(json_reader *reader, uint64_t layer, const char *field, bool *value);
remat_status json_read_text(json_reader *reader, uint64_t layer, const char *field, const char **text);
/* The opening of an object or array. */
remat_status json_read_open(json_reader *reader, uint64_t layer, const char *field, json_kind kind);

/* `format` and `version`, which every file has. */
remat_status json_read_format(json_reader *reader, const char *format);
remat_status json_read_version(json_reader *reader, uint64_t version);

/* Remembers that field number `which` (below 64) was there; a second time is an error. */
remat_status json_field_once(const json_reader *reader, uint64_t layer, const char *field, unsigned which,
                             uint64_t *seen);

/* An unknown key: a warning, and its value is passed over. */
remat_status json_field_unknown(json_reader *reader, uint64_t layer, const char *field);

#endif
