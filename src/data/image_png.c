/* PNG files, by libpng's simplified interface: any kind of PNG becomes bytes of grey or of colours. */
#include "data/image_file.h"

#include "data/library.h"

static const char *const names[] = {"png_image_begin_read_from_memory", "png_image_finish_read", "png_image_free",
                                    NULL};

#ifdef REMAT_HAS_PNG
#include <png.h>

typedef struct png_calls {
    int (*begin)(png_imagep, png_const_voidp, size_t);
    int (*finish)(png_imagep, png_const_colorp, void *, png_int_32, void *);
    void (*release)(png_imagep);
} png_calls;

static remat_status refuse(const image *made, const char *path, const png_image *png)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.file = path;
    return remat_fail(made->context, REMAT_BAD_INPUT, &place, "the PNG image is damaged: %.60s", png->message);
}

static remat_status read_all(const png_calls *calls, png_image *png, image *made, const char *path,
                             const unsigned char *bytes, size_t count)
{
    const png_color black = {0, 0, 0}; /* behind what is transparent */
    if (!calls->begin(png, bytes, count))
        return refuse(made, path, png);
    REMAT_TRY(image_allocate(made, path, png->width, png->height));
    png->format = made->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    if (!calls->finish(png, &black, made->pixels, (png_int_32)(made->width * made->channels), NULL))
        return refuse(made, path, png);
    return REMAT_OK;
}

remat_status image_read_png(image *made, const char *path, const unsigned char *bytes, size_t count)
{
    library loaded;
    png_calls calls;
    png_image png = {.version = PNG_IMAGE_VERSION};
    REMAT_TRY(library_open(made->context, LIBRARY_PNG, names, path, &loaded));
    *(void **)&calls.begin = loaded.functions[0];
    *(void **)&calls.finish = loaded.functions[1];
    *(void **)&calls.release = loaded.functions[2];
    remat_status status = read_all(&calls, &png, made, path, bytes, count);
    calls.release(&png);
    library_close(&loaded);
    return status;
}
#else
remat_status image_read_png(image *made, const char *path, const unsigned char *bytes, size_t count)
{
    library loaded;
    (void)bytes, (void)count;
    return library_open(made->context, LIBRARY_PNG, names, path, &loaded);
}
#endif
