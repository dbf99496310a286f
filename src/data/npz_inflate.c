#include "data/npz_inflate.h"

#include "base/alloc.h"
#include "data/library.h"

static const char *const names[] = {"inflateInit2_", "inflate", "inflateEnd", "crc32", NULL};

#ifdef REMAT_HAS_ZLIB
#include <zlib.h>

enum { PART_BYTES = 1 << 14, MOST_RATIO = 1032 }; /* deflate makes no more than this of a byte */

/* zlib's own memory comes from the context; the size stands in front, for the release. */
typedef union zlib_block {
    size_t bytes;
    max_align_t aligned;
} zlib_block;

static void *zlib_allocate(void *context, unsigned count, unsigned size)
{
    size_t bytes = (size_t)count * size + sizeof(zlib_block);
    zlib_block *block = remat_alloc(context, bytes, 1);
    if (!block)
        return NULL;
    block->bytes = bytes;
    return block + 1;
}

static void zlib_release(void *context, void *memory)
{
    zlib_block *block = (zlib_block *)memory - 1;
    remat_release(context, block, block->bytes, 1);
}

typedef struct zlib_calls {
    int (*init)(z_streamp, int, const char *, int);
    int (*inflate)(z_streamp, int);
    int (*end)(z_streamp);
    uLong (*crc)(uLong, const Bytef *, uInt);
} zlib_calls;

static remat_status damaged(const data_file *file)
{
    remat_place place = data_file_place(file);
    return remat_fail(file->context, REMAT_BAD_INPUT, &place, "a compressed array is damaged");
}

/* All of the packed bytes must give exactly `bytes` bytes. */
static remat_status run(const zlib_calls *zlib, z_stream *stream, const data_file *file, uint64_t at, uint64_t packed,
                        unsigned char *to, uint64_t bytes)
{
    unsigned char part[PART_BYTES];
    int state = Z_OK;
    uint64_t made = 0;
    while (state == Z_OK) {
        if (stream->avail_in == 0 && packed) {
            size_t count = packed < PART_BYTES ? (size_t)packed : PART_BYTES;
            REMAT_TRY(data_file_read(file, at, part, count));
            at += count;
            packed -= count;
            stream->next_in = part;
            stream->avail_in = (unsigned)count;
        }
        unsigned room = bytes - made < (1u << 30) ? (unsigned)(bytes - made) : 1u << 30;
        stream->next_out = to + made;
        stream->avail_out = room;
        state = zlib->inflate(stream, Z_NO_FLUSH); /* Z_BUF_ERROR where nothing can be done any more */
        made += room - stream->avail_out;
    }
    if (state == Z_MEM_ERROR)
        return REMAT_NO_MEMORY;
    return state == Z_STREAM_END && made == bytes ? REMAT_OK : damaged(file);
}

static uint32_t checksum_of(const zlib_calls *zlib, const unsigned char *from, uint64_t bytes)
{
    uLong sum = zlib->crc(0, NULL, 0);
    for (uint64_t done = 0; done < bytes;) {
        unsigned count = bytes - done < (1u << 30) ? (unsigned)(bytes - done) : 1u << 30;
        sum = zlib->crc(sum, from + done, count);
        done += count;
    }
    return (uint32_t)sum;
}

static remat_status inflate_all(const library *loaded, const data_file *file, uint64_t at, uint64_t packed,
                                unsigned char *to, uint64_t bytes, uint32_t checksum)
{
    zlib_calls zlib;
    *(void **)&zlib.init = loaded->functions[0];
    *(void **)&zlib.inflate = loaded->functions[1];
    *(void **)&zlib.end = loaded->functions[2];
    *(void **)&zlib.crc = loaded->functions[3];
    z_stream stream = {.zalloc = zlib_allocate, .zfree = zlib_release, .opaque = file->context};
    if (zlib.init(&stream, -MAX_WBITS, ZLIB_VERSION, (int)sizeof stream) != Z_OK)
        return remat_fail(file->context, REMAT_NO_MEMORY, NULL, "no memory for inflating");
    remat_status status = run(&zlib, &stream, file, at, packed, to, bytes);
    zlib.end(&stream);
    REMAT_TRY(status);
    return checksum_of(&zlib, to, bytes) == checksum ? REMAT_OK : damaged(file);
}

remat_status npz_inflate(data_file *file, uint64_t at, uint64_t packed, uint64_t bytes, uint32_t checksum)
{
    /* So no file asks for more memory than its size can be worth. */
    if (bytes / MOST_RATIO > packed)
        return damaged(file);
    library loaded;
    REMAT_TRY(library_open(file->context, LIBRARY_ZLIB, names, file->path, &loaded));
    unsigned char *to = remat_alloc(file->context, bytes, 1);
    remat_status status = to ? inflate_all(&loaded, file, at, packed, to, bytes, checksum) : REMAT_NO_MEMORY;
    library_close(&loaded);
    if (status != REMAT_OK) {
        remat_release(file->context, to, bytes, 1);
        return status;
    }
    data_file_replace(file, to, bytes);
    return REMAT_OK;
}
#else
remat_status npz_inflate(data_file *file, uint64_t at, uint64_t packed, uint64_t bytes, uint32_t checksum)
{
    library loaded;
    (void)at, (void)packed, (void)bytes, (void)checksum;
    return library_open(file->context, LIBRARY_ZLIB, names, file->path, &loaded);
}
#endif
