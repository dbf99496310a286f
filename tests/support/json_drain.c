#include "support/json_drain.h"

json_source json_source_open(fixture *f, const void *bytes, size_t length)
{
    json_source source = {stream_of(bytes, length), NULL};
    expect_ok(f, json_reader_create(f->context, source.stream, "text", &source.reader));
    return source;
}

void json_source_close(json_source *source)
{
    json_reader_destroy(source->reader);
    fclose(source->stream);
}

remat_status json_drain(fixture *f, const void *bytes, size_t length)
{
    json_source source = json_source_open(f, bytes, length);
    json_token token = {JSON_NULL, "", 0, false};
    remat_status status = REMAT_OK;
    while (status == REMAT_OK && token.kind != JSON_END)
        status = json_next(source.reader, &token);
    json_source_close(&source);
    return status;
}

remat_status json_drain_text(fixture *f, const char *text)
{
    return json_drain(f, text, strlen(text));
}

json_token json_expect(fixture *f, json_source *source, json_kind kind)
{
    json_token token;
    expect_ok(f, json_next(source->reader, &token));
    if (token.kind != kind)
        fail_msg("%s was read, not %s", json_kind_name(token.kind), json_kind_name(kind));
    return token;
}
