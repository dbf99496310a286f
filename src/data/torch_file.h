/* State dicts that torch.save wrote: a ZIP archive of a pickle, which names the tensors, and of their values.
 *
 *     NAME/data.pkl     OrderedDict of names and tensors: storage key, offset, shape, strides
 *     NAME/data/KEY     the values of a storage, little-endian
 *
 * The pickle is only read: nothing that it names is run. */
#ifndef REMAT_DATA_TORCH_FILE_H
#define REMAT_DATA_TORCH_FILE_H

#include "data/safetensors_file.h"

/* Fills the tensors of `file`, whose source is open and is an archive. Tensors of dictionaries in dictionaries have names
 * with dots between; a checkpoint such as {"model": ..., "epoch": 3} is read from its state dict on. REMAT_BAD_INPUT,
 * REMAT_IO, REMAT_NO_MEMORY. */
remat_status torch_file_read(safetensors *file);

/* Refuses a file in the format of torch.save before PyTorch 1.6. */
remat_status torch_file_check_age(const safetensors *file);

#endif
