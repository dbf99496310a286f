#include "data/data_samples.h"

#include <string.h>

static remat_status fill(void *user, uint64_t sample, void *const *inputs, void *labels)
{
    const data_samples *from = user;
    remat_samples_row row;
    remat_status status = remat_samples_row_get(from->samples, sample, &row);
    if (status != REMAT_OK)
        return status;
    const int32_t *const arrays[] = {row.ids, row.positions, row.segments};
    size_t bytes = (size_t)from->length * sizeof(int32_t);
    for (size_t i = 0; i < from->input_count && i < 3; i++)
        memcpy(inputs[i], arrays[i], bytes);
    if (labels)
        memcpy(labels, row.labels, bytes);
    return REMAT_OK;
}

data_generator data_samples_generator(data_samples *from)
{
    remat_samples_figures figures;
    remat_samples_figures_get(from->samples, &figures);
    return (data_generator){.fill = fill, .user = from, .samples = figures.rows};
}
