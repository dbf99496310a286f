/* Writing state dicts that torch.load reads (data/torch_file.h has the format). */
#ifndef REMAT_DATA_TORCH_WRITE_H
#define REMAT_DATA_TORCH_WRITE_H

#include "data/safetensors.h"

/* Writes the complete file or nothing. All entries are fp32. `source` is as in safetensors_save; every entry is opened
 * twice. REMAT_INVALID: the file would have 4 GiB or more. REMAT_IO, REMAT_NO_MEMORY. */
remat_status torch_write(remat_context *context, const char *path, const safetensors_entry *entries, size_t count,
                         const safetensors_source *source);

#endif
