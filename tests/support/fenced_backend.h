/* A backend for tests: what a device would be, on a machine without one (fenced_backend.c). */
#ifndef TESTS_FENCED_BACKEND_H
#define TESTS_FENCED_BACKEND_H

/* Its name, "fenced". A test that calls this is linked with it. */
const char *fenced_device(void);

#endif
