/* The kernels of a device as a table that the tests of kernels can call. The tensors of every call are copied to the device and back.
 * REMAT_TEST_DEVICE=cuda makes those tests judge the device instead of the processor. */
#ifndef TESTS_DEVICE_KERNELS_H
#define TESTS_DEVICE_KERNELS_H

#include "backend/cpu/kernel.h"

/* NULL where no device is asked for. */
const kernel_table *device_kernels(void);

/* Runs one operation on the device. */
void device_perform(operation op, const void *args);

#endif
