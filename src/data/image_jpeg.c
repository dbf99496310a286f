/* JPEG files, by libjpeg. */
#include "data/image_file.h"

#include "data/library.h"

static const char *const names[] = {"jpeg_std_error",
                                    "jpeg_CreateDecompress",
                                    "jpeg_mem_src",
                                    "jpeg_read_header",
                                    "jpeg_start_decompress",
                                    "jpeg_read_scanlines",
                                    "jpeg_destroy_decompress",
                                    NULL};

#ifdef REMAT_HAS_JPEG
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

typedef struct jpeg_calls {
    struct jpeg_error_mgr *(*std_error)(struct jpeg_error_mgr *);
    void (*create)(j_decompress_ptr, int, size_t);
    void (*set_source)(j_decompress_ptr, const unsigned char *, unsigned long);
    int (*read_header)(j_decompress_ptr, boolean);
    boolean (*start)(j_decompress_ptr);
    JDIMENSION (*read_rows)(j_decompress_ptr, JSAMPARRAY, JDIMENSION);
    void (*destroy)(j_decompress_ptr);
} jpeg_calls;

/* What failed says so by a jump out of the library. */
typedef struct jpeg_reader {
    struct jpeg_error_mgr errors; /* the first: the library has a pointer to it */
    struct jpeg_decompress_struct info;
    jmp_buf failed;
    char message[JMSG_LENGTH_MAX];
    image *made;
    const char *path;
    remat_status status;
} jpeg_reader;

static void jump_out(j_common_ptr info)
{
    jpeg_reader *reader = (jpeg_reader *)(void *)info->err;
    info->err->format_message(info, reader->message);
    longjmp(reader->failed, 1);
}

/* A warning: the picture is not quite as it was. */
static void note_warning(j_common_ptr info, int level)
{
    jpeg_reader *reader = (jpeg_reader *)(void *)info->err;
    if (level < 0 && info->err->num_warnings++ == 0)
        info->err->format_message(info, reader->message);
}

/* Everything that may jump. It changes the reader, which is not a variable of the function that is jumped to. */
static void decode(const jpeg_calls *calls, jpeg_reader *reader, const unsigned char *bytes, size_t count)
{
    image *made = reader->made;
    struct jpeg_decompress_struct *info = &reader->info;
    calls->create(info, JPEG_LIB_VERSION, sizeof *info);
    calls->set_source(info, bytes, (unsigned long)count);
    calls->read_header(info, TRUE);
    info->out_color_space = made->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info->dct_method = JDCT_ISLOW; /* the exact one */
    reader->status = image_allocate(made, reader->path, info->image_width, info->image_height);
    if (reader->status != REMAT_OK)
        return;
    calls->start(info);
    while (info->output_scanline < info->output_height) {
        JSAMPROW row = made->pixels + (size_t)info->output_scanline * made->width * made->channels;
        calls->read_rows(info, &row, 1);
    }
}

static remat_status read_all(const jpeg_calls *calls, jpeg_reader *reader, const unsigned char *bytes, size_t count)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = reader->path;
    reader->info.err = calls->std_error(&reader->errors);
    reader->errors.error_exit = jump_out;
    reader->errors.emit_message = note_warning;
    reader->status = REMAT_BAD_INPUT;
    bool jumped = setjmp(reader->failed) != 0;
    if (!jumped)
        decode(calls, reader, bytes, count);
    long warnings = reader->errors.num_warnings;
    calls->destroy(&reader->info);
    if (jumped)
        return remat_fail(reader->made->context, REMAT_BAD_INPUT, &place, "the JPEG image is damaged: %.100s",
                          reader->message);
    if (reader->status == REMAT_OK && warnings)
        remat_warn(reader->made->context, &place, "the JPEG image is damaged, and was read as far as it goes: %.100s",
                   reader->message);
    return reader->status;
}

remat_status image_read_jpeg(image *made, const char *path, const unsigned char *bytes, size_t count)
{
    library loaded;
    jpeg_calls calls;
    jpeg_reader reader = {.made = made, .path = path};
    REMAT_TRY(library_open(made->context, LIBRARY_JPEG, names, path, &loaded));
    *(void **)&calls.std_error = loaded.functions[0];
    *(void **)&calls.create = loaded.functions[1];
    *(void **)&calls.set_source = loaded.functions[2];
    *(void **)&calls.read_header = loaded.functions[3];
    *(void **)&calls.start = loaded.functions[4];
    *(void **)&calls.read_rows = loaded.functions[5];
    *(void **)&calls.destroy = loaded.functions[6];
    remat_status status = read_all(&calls, &reader, bytes, count);
    library_close(&loaded);
    return status;
}
#else
remat_status image_read_jpeg(image *made, const char *path, const unsigned char *bytes, size_t count)
{
    library loaded;
    (void)bytes, (void)count;
    return library_open(made->context, LIBRARY_JPEG, names, path, &loaded);
}
#endif
