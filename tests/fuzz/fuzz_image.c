/* PNG and JPEG files. The first byte says whether colours are wanted, and how the image is fitted. */
#include "fuzz/fuzz.h"

#include "data/image_file.h"

void fuzz_image(const uint8_t *data, size_t size)
{
    uint8_t choice = fuzz_take(&data, &size);
    remat_context *context = fuzz_begin();
    image read;
    unsigned char small[3 * 5 * 4];
    if (fuzz_accepted(context, image_read(context, fuzz_file(0, data, size), choice & 1 ? 1 : 3, &read)))
        image_fit(&read, 5, 4, choice & 2, small);
    image_end(&read);
    fuzz_end(context);
}
