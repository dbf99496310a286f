#include "backend/recording.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

void recording_begin(recording *calls, const backend *owner)
{
    *calls = (recording){.owner = owner};
}

remat_status recording_reserve(recording *calls)
{
    size_t counted = calls->used;
    calls->counts = false;
    calls->used = 0;
    if (counted == 0)
        return REMAT_OK;
    calls->bytes = remat_alloc(calls->owner->context, counted, 1);
    calls->capacity = calls->bytes ? counted : 0;
    return calls->bytes ? REMAT_OK : REMAT_NO_MEMORY;
}

void recording_end(recording *calls)
{
    if (calls->owner)
        remat_release(calls->owner->context, calls->bytes, calls->capacity, 1);
    *calls = (recording){0};
}

static remat_status fail_types(const recording *calls, operation op, const tensor_ref *tensors)
{
    char list[160] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < operation_table[op].tensors && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 tensors[i].at ? remat_dtype_name(tensors[i].type) : "none");
    return remat_fail(calls->owner->context, REMAT_INVALID, NULL, "the %s kernels have no %s of %s",
                      calls->owner->kernels, operation_table[op].name, list);
}

remat_status recording_add(recording *calls, operation op, const void *args)
{
    const operation_traits *traits = &operation_table[op];
    remat_context *context = calls->owner->context;
    char types[OPERATION_MAX_TENSORS + 1];
    operation_types(op, args, types);
    recorded_call call = {.kernel = backend_find_kernel(calls->owner, op, types), .op = op};
    if (!call.kernel)
        return fail_types(calls, op, args);
    call.bytes = (uint32_t)(sizeof call + ((traits->bytes + 7u) & ~7u));
    if (!calls->counts) {
        REMAT_TRY(remat_grow(context, (void **)&calls->bytes, &calls->capacity, calls->used + call.bytes, 1));
        memcpy(calls->bytes + calls->used, &call, sizeof call);
        memcpy(calls->bytes + calls->used + sizeof call, args, traits->bytes);
    }
    calls->used += call.bytes;
    return REMAT_OK;
}
