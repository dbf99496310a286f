/* What other parts of the library keep with a context, such as registered types. */
#ifndef REMAT_BASE_ATTACH_H
#define REMAT_BASE_ATTACH_H

#include <remat/context.h>

/* Attaches an object, in place of an earlier one of the same key; the key is an address. Only one key can be in use. When
 * the context is destroyed, `release` gets the object. REMAT_INTERNAL: another key is in use. */
remat_status remat_context_attach(remat_context *context, const void *key, void *object,
                                  void (*release)(remat_context *context, void *object));

/* The object of a key; NULL: none. */
void *remat_context_attached(const remat_context *context, const void *key);

#endif
