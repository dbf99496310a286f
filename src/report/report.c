#include "report/report_document.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/output.h"
#include "base/output_file.h"
#include "report/page_parts.h"

#include <errno.h>
#include <remat/remat.h>
#include <string.h>

struct remat_report {
    remat_context *context;
    report_document document; /* the files, with commas between them */
    size_t count;
    size_t file_begin; /* of the one being added */
};

remat_status remat_report_create(remat_context *context, remat_report **report)
{
    *report = remat_alloc_zeroed(context, 1, sizeof **report);
    if (!*report)
        return REMAT_NO_MEMORY;
    (*report)->context = (*report)->document.context = context;
    return REMAT_OK;
}

void remat_report_destroy(remat_report *report)
{
    if (!report)
        return;
    document_clear(&report->document);
    remat_release(report->context, report, 1, sizeof *report);
}

void remat_report_options_init_sized(remat_report_options *options, size_t size)
{
    const remat_report_options defaults = {.curve = true, .arena = true};
    remat_options_give(options, size, &defaults, sizeof defaults);
}

remat_context *report_context(const remat_report *report)
{
    return report->context;
}

report_document *report_begin_file(remat_report *report, const char *kind, const char *label, const char *name)
{
    report_document *to = &report->document;
    report->file_begin = to->used;
    document_open(to, NULL, '{');
    document_text(to, "kind", kind);
    document_text(to, "label", label);
    document_text(to, "name", name);
    return to;
}

remat_status report_end_file(remat_report *report)
{
    report_document *document = &report->document;
    document_close(document, '}');
    remat_status status = document->status;
    if (status == REMAT_OK) {
        report->count++;
    } else {
        document->used = report->file_begin;
        document->comma = report->count > 0;
        document->status = REMAT_OK;
    }
    return status;
}

size_t remat_report_count(const remat_report *report)
{
    return report->count;
}

/* ---- writing ---- */

typedef struct text_part {
    const char *bytes;
    size_t count;
} text_part;

#define LITERAL(text) ((text_part){text, sizeof text - 1})

static remat_status write_parts(const remat_report *report, FILE *stream, const text_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].count > 0 && fwrite(parts[i].bytes, 1, parts[i].count, stream) != parts[i].count)
            return remat_fail(report->context, REMAT_IO, NULL, "writing failed: %s", strerror(errno));
    if (fflush(stream) != 0)
        return remat_fail(report->context, REMAT_IO, NULL, "writing failed: %s", strerror(errno));
    return REMAT_OK;
}

#define DOCUMENT_PARTS                                                                    \
    LITERAL("{\"format\":\"remat-report\",\"version\":1,\"remat\":\""),                   \
        (text_part){remat_version(), strlen(remat_version())}, LITERAL("\",\"files\":["), \
        (text_part){report->document.bytes, report->document.used}, LITERAL("]}\n")

remat_status remat_report_write_json(const remat_report *report, FILE *stream)
{
    const text_part parts[] = {DOCUMENT_PARTS};
    return write_parts(report, stream, parts, sizeof parts / sizeof parts[0]);
}

remat_status remat_report_write(const remat_report *report, FILE *stream)
{
    const text_part parts[] = {{page_head, (size_t)(page_head_end - page_head)},
                               DOCUMENT_PARTS,
                               {page_tail, (size_t)(page_tail_end - page_tail)}};
    return write_parts(report, stream, parts, sizeof parts / sizeof parts[0]);
}

static remat_status write_page(const void *user, FILE *stream)
{
    return remat_report_write(user, stream);
}

remat_status remat_report_save(const remat_report *report, const char *path)
{
    return output_save(report->context, path, write_page, report);
}

static remat_status write_document(const void *user, FILE *stream)
{
    return remat_report_write_json(user, stream);
}

remat_status remat_report_save_json(const remat_report *report, const char *path)
{
    return output_save(report->context, path, write_document, report);
}
