/* A backend for tests: what a device would be, on a machine without one (fenced_backend.c). */
#ifndef TESTS_FENCED_BACKEND_H
#define TESTS_FENCED_BACKEND_H

#include <stdint.h>

/* Its name, "fenced". A test that calls this is linked with it. */
const char *fenced_device(void);

/* Devices that are opened from now on have lanes, for an NCCL of the tests, and this identity. It puts its calls into the stream of a
 * lane, and finds the memory behind the fence. */
void fenced_use_lanes(uint64_t identity);
void fenced_stream_call(void *lane, void (*call)(void *argument), void *argument);
void *fenced_stream_address(void *lane, const void *at);

#endif
