/* Reads all samples of a data source for the fuzz targets of the kinds of data. */
#ifndef TESTS_FUZZ_DATA_H
#define TESTS_FUZZ_DATA_H

#include "fuzz/fuzz.h"

#include "data/data.h"

/* Opens the source, if its files are good, and reads its samples. Numbers must be finite, ids in their range. */
void fuzz_data_read(remat_context *context, const dataset_settings *settings, const data_needs *needs);

#endif
