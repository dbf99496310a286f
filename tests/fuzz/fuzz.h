/* What the fuzz targets share. A target is one function in one file, fuzz_NAME.c. It gets bytes from a fuzzer, or from
 * a file in corpus/NAME, and gives them to a reader of the library. Whatever the bytes are, it must return: without a
 * crash, without a leak, and soon. FUZZ_CHECK says what else must be so. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <remat/remat.h>

/* The list of all targets. */
/* clang-format off */
#define FUZZ_TARGETS(X) \
    X(chat_template) X(checkpoint) X(csv) X(data_csv) X(data_encoding) X(data_text) X(disk_store) X(file_kind) X(graph) X(graph_plan) X(image) X(ini) X(json) \
    X(lifetimes) X(model) X(model_plan) X(npy) X(npz) X(pickle) X(plan) X(pretrained) X(profile) X(properties) X(report_plan) X(run_log) X(safetensors) X(samples) X(strategy) \
    X(tokenizer) X(units) X(utf8) X(weight_names) FUZZ_ONNX(X)
#ifdef REMAT_HAS_ONNX
#define FUZZ_ONNX(X) X(onnx)
#else
#define FUZZ_ONNX(X)
#endif
/* clang-format on */
#define X(name) void fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS(X)
#undef X

#define FUZZ_CHECK(condition)                                                               \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: this is not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                        \
        }                                                                                   \
    } while (0)

/* A context whose memory is limited, so that sizes in a hostile file end in REMAT_NO_MEMORY. */
remat_context *fuzz_begin(void);
/* The end of a context: all its memory must have come back. */
void fuzz_end(remat_context *context);

/* Whether a reader took its input. If not, it must have said why, in one of the ways in which input can be wrong. */
bool fuzz_accepted(const remat_context *context, remat_status status);

/* The bytes as a stream, which the caller closes, and as a terminated text, which the caller frees. The text ends
 * before the first NUL byte. */
FILE *fuzz_stream(const void *data, size_t size);
char *fuzz_text(const void *data, size_t size);

/* The bytes as a file in memory, and its path. Number `which`, from 0 to 3, replaces the file of that number. */
const char *fuzz_file(unsigned which, const void *data, size_t size);

/* A path to which files can be saved. fuzz_save_end removes the file. */
const char *fuzz_save_path(void);
void fuzz_save_end(void);

/* What is written to `stream`: `text`, terminated, after fuzz_output_end. The caller frees it. */
typedef struct fuzz_output {
    FILE *stream;
    char *text;
    size_t length;
} fuzz_output;
void fuzz_output_begin(fuzz_output *output);
void fuzz_output_end(fuzz_output *output);

/* Reads the bytes and writes what it read to `to`, in the plainest form. */
typedef remat_status (*fuzz_rewrite_fn)(remat_context *context, const void *data, size_t size, FILE *to);
/* What `rewrite` takes and writes, it must read again and write the same. Inputs of more than `longest` bytes are only read. */
void fuzz_round_trip(const uint8_t *data, size_t size, size_t longest, fuzz_rewrite_fn rewrite);

/* Takes the first byte, for a choice between settings; 0 if there is none. */
uint8_t fuzz_take(const uint8_t **data, size_t *size);

/* A safetensors file. Bytes that begin with '{' are its header: the length before it and values behind it are added.
 * Other bytes are the whole file. */
const char *fuzz_safetensors_file(unsigned which, const uint8_t *data, size_t size);

/* A profile of six layers with modes, which belongs to the context. The caller destroys it. */
remat_profile *fuzz_profile_of_six(remat_context *context);

/* What libFuzzer calls: runs the target that FUZZ_TARGET in the environment names. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
