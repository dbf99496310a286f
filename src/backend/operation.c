#include "backend/operation.h"

const operation_traits operation_table[OPERATION_COUNT] = {
#define X(name, tensors) [OP_##name] = {#name, sizeof(op_##name), tensors},
    OPERATION_LIST(X)
#undef X
};

#define X(name, tensors)                                                            \
    _Static_assert((tensors) <= OPERATION_MAX_TENSORS, "more tensors than may be"); \
    _Static_assert(sizeof(op_##name) >= (tensors) * sizeof(tensor_ref), "a struct begins with its tensors");
OPERATION_LIST(X)
#undef X

void operation_types(operation op, const void *args, char types[OPERATION_MAX_TENSORS + 1])
{
    const tensor_ref *tensors = args;
    uint32_t count = operation_table[op].tensors;
    for (uint32_t i = 0; i < count; i++)
        types[i] = tensors[i].at ? dtype_traits_of(tensors[i].type)->letter : '-';
    types[count] = 0;
}
