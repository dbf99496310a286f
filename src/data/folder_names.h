/* What is in a folder. */
#ifndef REMAT_DATA_FOLDER_NAMES_H
#define REMAT_DATA_FOLDER_NAMES_H

#include "data/data_encoding.h"

typedef enum folder_kind { FOLDER_FILES, FOLDER_FOLDERS } folder_kind;

/* The names of the regular files or of the folders in a folder, sorted by their bytes, without those that begin with a dot.
 * Links count as what they point to. The caller ends the list. REMAT_IO; REMAT_BAD_INPUT for a name with a comma or that
 * is not UTF-8; REMAT_NO_MEMORY. */
remat_status folder_names_find(remat_context *context, const char *folder, folder_kind kind, name_list *names);

#endif
