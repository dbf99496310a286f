/* Writing a folder in Hugging Face's layout: adapters as PEFT has them, or a whole model as it came, with adapters added to the
 * weights. */
#ifndef REMAT_TRAIN_FOLDER_SAVE_H
#define REMAT_TRAIN_FOLDER_SAVE_H

#include "model/model_object.h"

typedef struct folder_source {
    const remat_model *model;
    const remat_network *network;
    /* Copies the values of a parameter. */
    remat_status (*read)(const void *user, size_t parameter, float *to);
    const void *user;
} folder_source;

/* Whether a path means a folder: it is one, or ends with '/'. */
bool folder_is_meant(const char *path);

/* Makes the folder where it is not there. REMAT_INVALID: the model has no adapters; REMAT_IO, REMAT_NO_MEMORY. */
remat_status folder_save_adapters(const folder_source *source, const char *path);
/* REMAT_INVALID: the model did not come from a folder. */
remat_status folder_save_model(const folder_source *source, const char *path);
/* Whether one of them could write now. Makes the folder, and writes nothing. */
remat_status folder_save_check(const folder_source *source, const char *path, bool adapters);

#endif
