#include "backend/cuda/cudnn_graph_builder.h"

#ifdef REMAT_HAS_CUDNN

#include <stdio.h>

#include "base/alloc.h"

#define MAX_CONFIGS  32
#define MAX_BINDINGS 16

void cudnn_builder_start(cudnn_builder *builder, const cudnn_library *cudnn, remat_context *context)
{
    *builder = (cudnn_builder){.cudnn = cudnn, .context = context, .next_uid = CUDNN_FIRST_INNER_UID};
}

void cudnn_builder_end(cudnn_builder *builder)
{
    while (builder->made_count > 0)
        builder->cudnn->unmake(builder->made[--builder->made_count]);
    remat_release(builder->context, builder->made, builder->made_capacity, sizeof(*builder->made));
    builder->made = NULL;
    builder->made_capacity = 0;
}

/* ---- descriptors ---- */

/* Notes the first failure. */
static bool check(cudnn_builder *builder, cudnnStatus_t status, const char *what, int which)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return true;
    char text[256] = "";
    builder->cudnn->last_error(text, sizeof(text));
    if (!builder->failed)
        snprintf(builder->reason, sizeof(builder->reason), "%s %d: %s: %s", what, which,
                 builder->cudnn->status_text(status), text);
    builder->failed = true;
    return false;
}

static cudnn_object make(cudnn_builder *builder, cudnnBackendDescriptorType_t type)
{
    if (builder->failed)
        return NULL;
    if (remat_grow(builder->context, (void **)&builder->made, &builder->made_capacity, builder->made_count + 1,
                   sizeof(*builder->made)) != REMAT_OK) {
        builder->failed = builder->out_of_memory = true;
        return NULL;
    }
    cudnn_object object = NULL;
    if (!check(builder, builder->cudnn->make(type, &object), "descriptor of type", (int)type))
        return NULL;
    builder->made[builder->made_count++] = object;
    return object;
}

static void set(cudnn_builder *builder, cudnn_object object, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, size_t count, const void *values)
{
    if (!builder->failed)
        check(builder, builder->cudnn->set(object, name, type, (int64_t)count, values), "attribute", (int)name);
}

static void set_object(cudnn_builder *builder, cudnn_object object, cudnnBackendAttributeName_t name,
                       cudnn_object value)
{
    if (value)
        set(builder, object, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_type(cudnn_builder *builder, cudnn_object object, cudnnBackendAttributeName_t name,
                     cudnnDataType_t value)
{
    set(builder, object, name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

static void finish(cudnn_builder *builder, cudnn_object object, cudnnBackendDescriptorType_t type)
{
    if (!builder->failed)
        check(builder, builder->cudnn->finalize(object), "finishing a descriptor of type", (int)type);
}

static void finish_operation(cudnn_builder *builder, cudnn_object operation, cudnnBackendDescriptorType_t type)
{
    finish(builder, operation, type);
    if (builder->failed)
        return;
    if (builder->operation_count == CUDNN_MAX_OPERATIONS) {
        check(builder, CUDNN_STATUS_INTERNAL_ERROR, "too many operations", CUDNN_MAX_OPERATIONS);
        return;
    }
    builder->operations[builder->operation_count++] = operation;
}

/* ---- tensors ---- */

static cudnn_object tensor(cudnn_builder *builder, int64_t uid, cudnnDataType_t type, cudnn_shape shape, bool is_inner,
                           bool is_number)
{
    const int64_t alignment = 16;
    cudnn_object made = make(builder, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_type(builder, made, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    set(builder, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, shape.sizes);
    set(builder, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, shape.strides);
    set(builder, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(builder, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(builder, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_inner);
    set(builder, made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &is_number);
    finish(builder, made, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    return made;
}

cudnn_object cudnn_tensor(cudnn_builder *builder, int64_t uid, cudnnDataType_t type, cudnn_shape shape)
{
    return tensor(builder, uid, type, shape, false, false);
}

cudnn_object cudnn_number(cudnn_builder *builder, int64_t uid)
{
    const cudnn_shape one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    return tensor(builder, uid, CUDNN_DATA_FLOAT, one, false, true);
}

cudnn_object cudnn_inner(cudnn_builder *builder, cudnnDataType_t type, cudnn_shape shape)
{
    return tensor(builder, builder->next_uid++, type, shape, true, false);
}

/* ---- operations ---- */

void cudnn_pointwise(cudnn_builder *builder, const cudnn_pointwise_args *args)
{
    const float one = 1;
    cudnn_object kind = make(builder, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(builder, kind, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &args->mode);
    set_type(builder, kind, CUDNN_ATTR_POINTWISE_MATH_PREC, args->type);
    if (args->mode == CUDNN_POINTWISE_GEN_INDEX)
        set(builder, kind, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &args->axis);
    finish(builder, kind, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);

    cudnn_object operation = make(builder, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, args->x);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, args->y);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, args->b);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, args->t);
    set(builder, operation, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1, &one);
    set(builder, operation, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, 1, &one);
    finish_operation(builder, operation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
}

cudnn_object cudnn_binary(cudnn_builder *builder, cudnnPointwiseMode_t mode, cudnn_object x, cudnn_object b,
                          cudnn_shape shape)
{
    cudnn_object y = cudnn_inner(builder, CUDNN_DATA_FLOAT, shape);
    cudnn_pointwise(builder, &(cudnn_pointwise_args){.mode = mode, .x = x, .b = b, .y = y, .type = CUDNN_DATA_FLOAT});
    return y;
}

cudnn_object cudnn_unary(cudnn_builder *builder, cudnnPointwiseMode_t mode, cudnn_object x, cudnn_shape shape)
{
    return cudnn_binary(builder, mode, x, NULL, shape);
}

void cudnn_matmul(cudnn_builder *builder, cudnn_object a, cudnn_object b, cudnn_object c)
{
    cudnn_object kind = make(builder, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    set_type(builder, kind, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    finish(builder, kind, CUDNN_BACKEND_MATMUL_DESCRIPTOR);

    cudnn_object operation = make(builder, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
    finish_operation(builder, operation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
}

void cudnn_reduce(cudnn_builder *builder, cudnnReduceTensorOp_t mode, cudnn_object x, cudnn_object y)
{
    cudnn_object kind = make(builder, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    set_type(builder, kind, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(builder, kind, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    finish(builder, kind, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);

    cudnn_object operation = make(builder, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    finish_operation(builder, operation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
}

void cudnn_reshape(cudnn_builder *builder, cudnn_object x, cudnn_object y)
{
    cudnn_object operation = make(builder, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_object(builder, operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    finish_operation(builder, operation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
}

/* ---- plans ---- */

/* cuDNN's ranking of ways to run the graph. */
static size_t rank_configs(cudnn_builder *builder, cudnn_object graph, cudnn_object configs[MAX_CONFIGS])
{
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    cudnn_object ranking = make(builder, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_object(builder, ranking, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(builder, ranking, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    finish(builder, ranking, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    for (size_t i = 0; i < MAX_CONFIGS; i++)
        configs[i] = make(builder, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    int64_t count = 0;
    if (!builder->failed)
        check(builder,
              builder->cudnn->get(ranking, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGS,
                                  &count, configs),
              "attribute", (int)CUDNN_ATTR_ENGINEHEUR_RESULTS);
    if (!builder->failed && count == 0)
        check(builder, CUDNN_STATUS_NOT_SUPPORTED, "ways to run the graph:", 0);
    return builder->failed ? 0 : (size_t)count < MAX_CONFIGS ? (size_t)count : MAX_CONFIGS;
}

/* Whether the engine says of itself that it adds in an order that changes from run to run. */
static bool is_random(cudnn_builder *builder, cudnn_object config)
{
    cudnn_object engine = make(builder, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    if (builder->failed)
        return true;
    if (builder->cudnn->get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine) !=
            CUDNN_STATUS_SUCCESS ||
        builder->cudnn->get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                            CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes) != CUDNN_STATUS_SUCCESS)
        return true;
    for (int64_t i = 0; i < count; i++)
        if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
            return true;
    return false;
}

cudnn_object cudnn_plan(cudnn_builder *builder, cudnnHandle_t handle, int64_t *workspace_bytes)
{
    cudnn_object graph = make(builder, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(builder, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, builder->operation_count,
        builder->operations);
    set(builder, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    finish(builder, graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cudnn_object configs[MAX_CONFIGS];
    const size_t count = rank_configs(builder, graph, configs);
    for (size_t i = 0; i < count; i++) {
        if (is_random(builder, configs[i]))
            continue;
        cudnn_object plan = make(builder, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        set(builder, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
        set_object(builder, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs[i]);
        if (builder->failed)
            return NULL;
        /* A ranked config that cannot be built is no failure: the next one may be. */
        if (builder->cudnn->finalize(plan) != CUDNN_STATUS_SUCCESS)
            continue;
        int64_t one;
        if (check(builder,
                  builder->cudnn->get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                                      workspace_bytes),
                  "attribute", (int)CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE))
            return plan;
    }
    if (!builder->failed)
        check(builder, CUDNN_STATUS_NOT_SUPPORTED, "plans that can be built and add in a fixed order, of", (int)count);
    return NULL;
}

bool cudnn_run(cudnn_builder *builder, cudnnHandle_t handle, cudnn_object plan, const cudnn_binding *bindings,
               size_t count, void *workspace)
{
    int64_t uids[MAX_BINDINGS];
    void *addresses[MAX_BINDINGS];
    if (count > MAX_BINDINGS)
        return check(builder, CUDNN_STATUS_INTERNAL_ERROR, "too many tensors", (int)count);
    for (size_t i = 0; i < count; i++) {
        uids[i] = bindings[i].uid;
        addresses[i] = bindings[i].at;
    }
    const size_t before = builder->made_count;
    builder->failed = false; /* an earlier run may have failed */
    cudnn_object pack = make(builder, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(builder, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids);
    set(builder, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses);
    set(builder, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finish(builder, pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    bool done = !builder->failed && check(builder, builder->cudnn->execute(handle, plan, pack), "running a plan", 0);
    while (builder->made_count > before)
        builder->cudnn->unmake(builder->made[--builder->made_count]);
    return done;
}

#else

typedef int cudnn_graph_builder_is_absent; /* a file must hold something */

#endif
