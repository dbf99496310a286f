/* Reading the fields of JSON records: typed values with errors that name the field. */
#ifndef REMAT_BASE_JSON_FIELDS_H
#define REMAT_BASE_JSON_FIELDS_H

#include "base/json_reader.h"

/* The reader's place in the file, with the layer and the field, for messages. */
remat_place json_field_place(const json_reader *reader, uint64_t layer, const char *field);

/* Each reads the next value and checks its kind. REMAT_BAD_INPUT at `layer` and `field`. The text is valid until the
 * next call on the reader. */
remat_status json_read_count(json_reader *reader, uint64_t layer, const char *field, uint64_t *value);
remat_status json_read_bool(json_reader *reader, uint64_t layer, const char *field, bool *value);
remat_status json_read_text(json_reader *reader, uint64_t layer, const char *field, const char **text);
/* Reads the opening of an object or array. */
remat_status json_read_open(json_reader *reader, uint64_t layer, const char *field, json_kind kind);

/* Reads the next token and says whether it is of this kind, for loops over objects and arrays. Returns from the calling
 * function where reading fails. */
#define JSON_NEXT_IS(reader, token, wanted)  \
    ({                                       \
        REMAT_TRY(json_next(reader, token)); \
        (token)->kind == (wanted);           \
    })

/* `format` and `version`, which every file has. */
remat_status json_read_format(json_reader *reader, const char *format);
remat_status json_read_version(json_reader *reader, uint64_t version);

/* Notes in `seen` that field number `which` (below 64) was read. The second time is an error. */
remat_status json_field_once(const json_reader *reader, uint64_t layer, const char *field, unsigned which,
                             uint64_t *seen);

/* Warns about an unknown key and skips its value. */
remat_status json_field_unknown(json_reader *reader, uint64_t layer, const char *field);

#endif
