#include "backend/cuda/cuda_products.h"

#include "backend/cuda/cuda_choices.h"
#include "base/alloc.h"
#include "base/error.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The functions that are used, by name. */
#define FUNCTIONS(X)                        \
    X(cublasLtCreate)                       \
    X(cublasLtDestroy)                      \
    X(cublasLtGetVersion)                   \
    X(cublasLtMatmul)                       \
    X(cublasLtMatmulDescCreate)             \
    X(cublasLtMatmulDescDestroy)            \
    X(cublasLtMatmulDescSetAttribute)       \
    X(cublasLtMatrixLayoutCreate)           \
    X(cublasLtMatrixLayoutDestroy)          \
    X(cublasLtMatmulPreferenceCreate)       \
    X(cublasLtMatmulPreferenceDestroy)      \
    X(cublasLtMatmulPreferenceSetAttribute) \
    X(cublasLtMatmulAlgoGetHeuristic)

enum { MOST_PROPOSALS = 8 };

typedef struct product {
    product_key key;
    cublasLtMatmulDesc_t about;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t proposals[MOST_PROPOSALS];
    int proposal_count; /* 0: the library has none */
    int choice;
    bool is_settled, was_timed; /* settled: the choice is not to be timed any more */
    struct product *next;
} product;

enum { BUCKETS = 256 };

struct cuda_products {
    void *library;
    cublasLtHandle_t handle;
    remat_context *context;
    product *buckets[BUCKETS];
    bool looks; /* times the proposals for a product that is new */
#define X(name) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
};

/* ---- opening ---- */

static void *load(void)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        "/usr/local/cuda/lib64/libcublasLt.so.13",
                                        "/usr/local/cuda/lib64/libcublasLt.so.12"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool find_functions(cuda_products *products)
{
    bool found = true;
#define X(name)                                                  \
    *(void **)&products->name = dlsym(products->library, #name); \
    found = found && products->name;
    FUNCTIONS(X)
#undef X
    return found;
}

remat_status cuda_products_open(remat_context *context, cuda_products **made)
{
    cuda_products *products = remat_alloc_zeroed(context, 1, sizeof *products);
    *made = NULL;
    if (!products)
        return REMAT_NO_MEMORY;
    products->context = context;
    products->library = load();
    if (!products->library || !find_functions(products) ||
        products->cublasLtCreate(&products->handle) != CUBLAS_STATUS_SUCCESS) {
        cuda_products_close(context, products);
        return remat_fail(
            context, REMAT_INVALID, NULL,
            "the device cuda needs cuBLAS: libcublasLt.so.13 was not found; install it, or name its folder in "
            "LD_LIBRARY_PATH");
    }
    *made = products;
    return REMAT_OK;
}

static void release_product(cuda_products *products, product *made)
{
    if (made->a)
        products->cublasLtMatrixLayoutDestroy(made->a);
    if (made->b)
        products->cublasLtMatrixLayoutDestroy(made->b);
    if (made->c)
        products->cublasLtMatrixLayoutDestroy(made->c);
    if (made->about)
        products->cublasLtMatmulDescDestroy(made->about);
    remat_release(products->context, made, 1, sizeof *made);
}

void cuda_products_close(remat_context *context, cuda_products *products)
{
    if (!products)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        for (product *made = products->buckets[i], *next; made; made = next) {
            next = made->next;
            release_product(products, made);
        }
    if (products->handle)
        products->cublasLtDestroy(products->handle);
    if (products->library)
        dlclose(products->library);
    remat_release(context, products, 1, sizeof *products);
}

size_t cuda_products_version(const cuda_products *products)
{
    return products->cublasLtGetVersion();
}

/* ---- one product ---- */

/* How addresses are aligned, at most 16 bytes: what is fastest needs no more. */
static uint32_t alignment_of(const op_gemm *p)
{
    const uintptr_t all =
        (uintptr_t)p->a.at | (uintptr_t)p->b.at | (uintptr_t)p->c.at | (uintptr_t)p->derivative_at.at | 16;
    return (uint32_t)(all & (~all + 1));
}

static product_key key_of(const op_gemm *p)
{
    return (product_key){.m = p->m,
                         .n = p->n,
                         .k = p->k,
                         .lda = p->lda,
                         .ldb = p->ldb,
                         .ldc = p->ldc,
                         .transpose_a = p->transpose_a,
                         .transpose_b = p->transpose_b,
                         .accumulate = p->accumulate,
                         .has_bias = p->bias.at != NULL,
                         .type = (uint32_t)p->a.type,
                         .c_type = (uint32_t)p->c.type,
                         .alignment = alignment_of(p),
                         .derives = p->derivative_at.at != NULL};
}

static size_t bucket_of(const product_key *key)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < sizeof *key; i++)
        hash = (hash ^ ((const unsigned char *)key)[i]) * 1099511628211u;
    return (size_t)(hash % BUCKETS);
}

static cudaDataType type_of(uint32_t type)
{
    return type == REMAT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static cublasStatus_t describe(const cuda_products *l, const product_key *key, product *made)
{
    /* Matrices by rows are the transposed ones by columns: C' = B' A'. */
    const cublasOperation_t of_b = key->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t of_a = key->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = key->derives ? CUBLASLT_EPILOGUE_DGELU : CUBLASLT_EPILOGUE_BIAS;
    const int64_t row = (int64_t)key->ldc;
    const cudaDataType type = type_of(key->type), c_type = type_of(key->c_type);
    /* Products in fp32 are in fp32: no tensor cores that round their operands. */
    const cublasComputeType_t compute = key->type == REMAT_FP32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
    cublasStatus_t status = l->cublasLtMatmulDescCreate(&made->about, compute, CUDA_R_32F);
    if (!status)
        status = l->cublasLtMatmulDescSetAttribute(made->about, CUBLASLT_MATMUL_DESC_TRANSA, &of_b, sizeof of_b);
    if (!status)
        status = l->cublasLtMatmulDescSetAttribute(made->about, CUBLASLT_MATMUL_DESC_TRANSB, &of_a, sizeof of_a);
    if (!status && (key->has_bias || key->derives))
        status =
            l->cublasLtMatmulDescSetAttribute(made->about, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (!status && key->has_bias)
        status =
            l->cublasLtMatmulDescSetAttribute(made->about, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &c_type, sizeof c_type);
    if (!status && key->derives)
        status = l->cublasLtMatmulDescSetAttribute(made->about, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &row, sizeof row);
    if (!status)
        status = l->cublasLtMatrixLayoutCreate(&made->b, type, key->transpose_b ? key->k : key->n,
                                               key->transpose_b ? key->n : key->k, (int64_t)key->ldb);
    if (!status)
        status = l->cublasLtMatrixLayoutCreate(&made->a, type, key->transpose_a ? key->m : key->k,
                                               key->transpose_a ? key->k : key->m, (int64_t)key->lda);
    if (!status)
        status = l->cublasLtMatrixLayoutCreate(&made->c, c_type, key->n, key->m, (int64_t)key->ldc);
    return status;
}

/* The library's proposals for products that add in a fixed order. */
static cublasStatus_t ask(const cuda_products *l, const product_key *key, size_t workspace, product *made)
{
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasLtMatmulPreference_t wish = NULL;
    cublasStatus_t status = l->cublasLtMatmulPreferenceCreate(&wish);
    if (status)
        return status;
#define WISH(what, value) \
    if (!status)          \
        status = l->cublasLtMatmulPreferenceSetAttribute(wish, what, &(value), sizeof(value));
    WISH(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace)
    WISH(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes)
    WISH(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key->alignment)
    WISH(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key->alignment)
    WISH(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key->alignment)
    WISH(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key->alignment)
#undef WISH
    if (!status)
        status = l->cublasLtMatmulAlgoGetHeuristic(l->handle, made->about, made->b, made->a, made->c, made->c, wish,
                                                   MOST_PROPOSALS, made->proposals, &made->proposal_count);
    l->cublasLtMatmulPreferenceDestroy(wish);
    if (status)
        made->proposal_count = 0;
    return status;
}

static product *find_made(const cuda_products *products, const product_key *key)
{
    for (product *made = products->buckets[bucket_of(key)]; made; made = made->next)
        if (memcmp(&made->key, key, sizeof *key) == 0)
            return made;
    return NULL;
}

static product *add(cuda_products *products, const product_key *key)
{
    product **bucket = &products->buckets[bucket_of(key)];
    product *made = remat_alloc_zeroed(products->context, 1, sizeof *made);
    if (!made)
        return NULL;
    made->key = *key;
    made->next = *bucket;
    *bucket = made;
    return made;
}

/* A choice that came from elsewhere stays, if there are so many proposals. */
static void prepare(const cuda_products *products, size_t workspace, product *made)
{
    if (!describe(products, &made->key, made))
        ask(products, &made->key, workspace, made);
    if (made->choice >= made->proposal_count || made->proposals[made->choice].state != CUBLAS_STATUS_SUCCESS)
        made->choice = 0;
    if (made->proposal_count && made->proposals[made->choice].state != CUBLAS_STATUS_SUCCESS)
        made->proposal_count = 0;
}

static cublasStatus_t multiply(const cuda_products *products, const product *made, cudaStream_t stream,
                               const op_gemm *p, int choice, void *workspace, size_t bytes)
{
    const float one = 1, old = p->accumulate ? 1 : 0;
    return products->cublasLtMatmul(products->handle, made->about, &one, p->b.at, made->b, p->a.at, made->a, &old,
                                    p->c.at, made->c, p->c.at, made->c, &made->proposals[choice].algo, workspace, bytes,
                                    stream);
}

/* ---- which proposal is fastest ---- */

enum { TIMED_ROUNDS = 5, TIMED_AT_ONCE = 4 };

/* The shortest of some rounds, in milliseconds; negative: it failed. */
static float time_proposal(const cuda_products *products, const product *made, cudaStream_t stream, const op_gemm *p,
                           int choice, void *workspace, size_t bytes, cudaEvent_t events[2])
{
    float best = -1;
    for (int round = 0; round <= TIMED_ROUNDS; round++) { /* the first one prepares */
        float milliseconds;
        cudaEventRecord(events[0], stream);
        for (int i = 0; i < TIMED_AT_ONCE; i++)
            if (multiply(products, made, stream, p, choice, workspace, bytes))
                return -1;
        cudaEventRecord(events[1], stream);
        if (cudaEventSynchronize(events[1]) || cudaEventElapsedTime(&milliseconds, events[0], events[1]))
            return -1;
        if (round > 0 && (best < 0 || milliseconds < best))
            best = milliseconds;
    }
    return best;
}

/* Another proposal than the first must be faster by 2 %: times vary. C is overwritten several times. */
static void look(const cuda_products *products, product *made, cudaStream_t stream, const op_gemm *p, void *workspace,
                 size_t bytes)
{
    cudaEvent_t events[2] = {NULL};
    enum cudaStreamCaptureStatus captured = cudaStreamCaptureStatusActive;
    if (cudaStreamIsCapturing(stream, &captured) || captured != cudaStreamCaptureStatusNone)
        return;
    if (!cudaEventCreate(&events[0]) && !cudaEventCreate(&events[1])) {
        float best = 0.98f * time_proposal(products, made, stream, p, 0, workspace, bytes, events);
        for (int i = 1; i < made->proposal_count; i++) {
            if (made->proposals[i].state != CUBLAS_STATUS_SUCCESS)
                continue;
            const float time = time_proposal(products, made, stream, p, i, workspace, bytes, events);
            if (time > 0 && time < best) {
                best = time;
                made->choice = i;
            }
        }
    }
    cudaGetLastError();
    for (int i = 0; i < 2; i++)
        if (events[i])
            cudaEventDestroy(events[i]);
    made->is_settled = made->was_timed = true;
}

void cuda_products_look(cuda_products *products, bool looks)
{
    products->looks = looks;
    for (size_t i = 0; i < BUCKETS && !looks; i++)
        for (product *made = products->buckets[i]; made; made = made->next)
            if (made->was_timed) {
                made->choice = 0;
                made->is_settled = made->was_timed = false;
            }
}

/* What the epilogue reads besides the sums. */
static cublasStatus_t set_pointers(const cuda_products *products, const product *made, const op_gemm *p)
{
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (made->key.has_bias)
        status = products->cublasLtMatmulDescSetAttribute(made->about, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias.at,
                                                          sizeof p->bias.at);
    if (!status && made->key.derives)
        status = products->cublasLtMatmulDescSetAttribute(made->about, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                                                          &p->derivative_at.at, sizeof p->derivative_at.at);
    return status;
}

cudaError_t cuda_product_launch(cuda_products *products, cudaStream_t stream, const op_gemm *p, void *workspace,
                                size_t bytes)
{
    const product_key key = key_of(p);
    product *made = find_made(products, &key);
    if (!made)
        made = add(products, &key);
    if (!made)
        return cudaErrorMemoryAllocation;
    if (!made->about)
        prepare(products, bytes, made);
    if (!made->proposal_count)
        return cudaErrorNotSupported;
    if (set_pointers(products, made, p))
        return cudaErrorUnknown;
    if (products->looks && !made->is_settled)
        look(products, made, stream, p, workspace, bytes);
    return multiply(products, made, stream, p, made->choice, workspace, bytes) ? cudaErrorLaunchFailure : cudaSuccess;
}

/* ---- choices as a text ---- */

/* Only what differs from the library's first proposal. */
remat_status cuda_products_chosen(const cuda_products *products, char **text)
{
    size_t count = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        for (const product *made = products->buckets[i]; made; made = made->next)
            count += made->choice != 0;
    *text = NULL;
    if (count == 0)
        return REMAT_OK;
    char *whole = remat_alloc(products->context, (count + 1) * LONGEST_CHOICE, 1);
    if (!whole)
        return REMAT_NO_MEMORY;
    size_t used = cuda_choices_begin(products->cublasLtGetVersion(), whole);
    for (size_t i = 0; i < BUCKETS; i++)
        for (const product *made = products->buckets[i]; made; made = made->next)
            if (made->choice != 0)
                used += cuda_choice_write(&made->key, made->choice, whole + used);
    *text = remat_text_copy(products->context, whole);
    remat_release(products->context, whole, (count + 1) * LONGEST_CHOICE, 1);
    return *text ? REMAT_OK : REMAT_NO_MEMORY;
}

static remat_status not_choices(const cuda_products *products)
{
    return remat_fail(products->context, REMAT_BAD_INPUT, NULL,
                      "the profile's algorithms cannot be read; let remat profile write them again");
}

remat_status cuda_products_use(cuda_products *products, const char *text)
{
    uint64_t version;
    product_key key;
    int choice;
    if (!cuda_choices_open(&text, &version))
        return not_choices(products);
    if (version != products->cublasLtGetVersion()) {
        remat_warn(products->context, NULL,
                   "the profile's algorithms are left out: they are of cuBLASLt %" PRIu64 ", this is %zu", version,
                   products->cublasLtGetVersion());
        return REMAT_OK;
    }
    while (*text) {
        if (!cuda_choice_read(&text, &key, &choice) || choice >= MOST_PROPOSALS)
            return not_choices(products);
        product *made = find_made(products, &key);
        if (!made)
            made = add(products, &key);
        if (!made)
            return REMAT_NO_MEMORY;
        made->choice = choice;
        made->is_settled = true;
    }
    return REMAT_OK;
}
