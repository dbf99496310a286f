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
