/* The JSON document inside a page, and the functions that write it. A plan, a model or a run is one file of the
 * document:
 *
 *     report_document *to = report_begin_file(report, "run", "run.log", "gpt-24");
 *     document_open(to, "loss", '{');
 *     ...
 *     document_close(to, '}');
 *     return report_end_file(report);
 *
 * The functions add commas. After the first failure they do nothing; report_end_file returns that failure and removes
 * the whole file. docs/formats.md ("Report") describes the document. The page shows the sections that a file has. */
#ifndef REMAT_REPORT_REPORT_DOCUMENT_H
#define REMAT_REPORT_REPORT_DOCUMENT_H

#include <stdbool.h>

#include <remat/report.h>

#include "base/error.h"

typedef struct report_document {
    remat_context *context;
    char *bytes;
    size_t used, capacity;
    bool comma; /* before the next value */
    remat_status status;
} report_document;

void document_clear(report_document *document);

/* '{' or '['; `key` NULL inside an array. */
void document_open(report_document *document, const char *key, char bracket);
void document_close(report_document *document, char bracket);
void document_number(report_document *document, const char *key, uint64_t number);
void document_real(report_document *document, const char *key, double number); /* null if it is not finite */
void document_text(report_document *document, const char *key, const char *text);
void document_bool(report_document *document, const char *key, bool value);
/* An array: `value`, an expression of i, for each i below `count`; `write` is one of the functions above. */
#define DOCUMENT_COLUMN(document, key, count, write, value) \
    do {                                                    \
        document_open(document, key, '[');                  \
        for (size_t i = 0; i < (count); i++)                \
            write(document, NULL, value);                   \
        document_close(document, ']');                      \
    } while (0)
/* A text of plain ASCII letters, written one letter at a time: begin, letters, end. */
void document_letters_begin(report_document *document, const char *key);
void document_letter(report_document *document, char letter);
void document_letters_end(report_document *document);

remat_context *report_context(const remat_report *report);

/* One file of the report; `kind` is profile, plan, model or run. */
report_document *report_begin_file(remat_report *report, const char *kind, const char *label, const char *name);
remat_status report_end_file(remat_report *report);

/* "holds": the parts of the memory. */
typedef struct report_hold {
    const char *what;
    uint64_t bytes;
} report_hold;
void report_write_holds(report_document *to, const report_hold *rows, size_t count);

/* "phases": forward from step 0, and the steps at which the loss and the backward pass begin; SIZE_MAX: there is none. */
void report_write_phases(report_document *to, size_t loss, size_t backward);

#endif
