#include "command.h"
#include "machine.h"
#include "onnx_file.h"
#include "run_text.h"
#include "shown.h"

#include <stdarg.h>
#include <string.h>

#include <remat/doctor.h>
#include <remat/ranks.h>

enum { OPTION_JSON = 256 };

static const struct argp_option options[] = {{"json", OPTION_JSON, NULL, 0, "print the findings as JSON", 0}, {0}};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    bool *json = state->input;
    switch (key) {
    case OPTION_JSON: *json = true; break;
    case ARGP_KEY_ARG: argp_error(state, "this command takes no FILE; '%s' is too much", shown(argument)); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "",
    .doc = "Show what Remat finds on this machine: the processor and the kernels for it, memory and its limits, and "
           "the libraries in use. Include this output when you report a problem.\v"
           "Examples:\n"
           "  remat doctor\n"
           "  remat doctor --json",
};

/* One finding; `advice` is NULL where there is nothing to say. */
typedef struct finding {
    const char *name;
    char value[512];
    const char *advice;
} finding;

enum { FINDINGS_MOST = 32 };
typedef struct findings {
    finding list[FINDINGS_MOST];
    size_t count;
} findings;

static void add(findings *all, const char *name, const char *advice, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add(findings *all, const char *name, const char *advice, const char *format, ...)
{
    if (all->count == FINDINGS_MOST)
        return;
    finding *made = &all->list[all->count++];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(made->value, sizeof made->value, format, arguments);
    va_end(arguments);
    made->name = name;
    made->advice = advice;
}

static void add_size(findings *all, const char *name, const char *advice, uint64_t bytes)
{
    char size[REMAT_SIZE_TEXT], count[REMAT_COUNT_TEXT];
    if (bytes == MACHINE_NO_LIMIT)
        add(all, name, NULL, "no limit");
    else
        add(all, name, advice, "%s (%s bytes)", remat_size_print(bytes, size), remat_count_print(bytes, count));
}

static void find_program(findings *all)
{
    char text[512];
    add(all, "version", NULL, "%s", remat_version());
    add(all, "compiler", NULL, "%s", remat_compiler_name());
    add(all, "charts", NULL, "%s", remat_chart_name());
    const char *name;
    bool is_there = false;
    for (size_t i = 0; (name = remat_library_name(i, &is_there)); i++)
        add(all, name,
            is_there ? NULL
            : i == 0 ? "compressed .npz files cannot be read"
                     : "these images cannot be read",
            "%s", is_there ? "there" : "not there");
    add(all, "ONNX files", onnx_file_is_read() ? NULL : "protobuf-c was missing; with it a new build reads them",
        onnx_file_is_read() ? "are read" : "are not read");
    const char *mpi = remat_mpi_version();
    add(all, "Open MPI", mpi ? NULL : "training with mpirun needs it; the Debian package is openmpi-bin", "%.*s",
        mpi ? (int)strcspn(mpi, ",") : 100, mpi ? mpi : "not there");
    if (machine_libraries(text, sizeof text))
        add(all, "libraries", NULL, "%s", text);
}

static void find_processor(findings *all)
{
    char text[512];
    if (machine_processor(text, sizeof text))
        add(all, "processor", NULL, "%s", text);
    machine_features(text, sizeof text);
    add(all, "features", NULL, "%s", *text ? text : "none that the kernels know");
    const char *kernels = remat_kernels_name();
    add(all, "kernels",
        strcmp(kernels, "portable") == 0 ? "no faster instruction set was found: training is slow" : NULL, "%s",
        kernels);
    long online = machine_cores_online(), usable = machine_cores_usable();
    add(all, "cores", usable < online ? "this process may not use all of them" : NULL, "%ld usable of %ld", usable,
        online);
    double share = machine_core_limit();
    if (share > 0)
        add(all, "cpu limit",
            share < (double)usable ? "the group's share is smaller than the cores: use fewer threads" : NULL,
            "%.2f cores", share);
    add(all, "threads", NULL, "%u unless you ask for another number", remat_default_threads());
}

/* Why there is none is worth knowing, too. */
static void find_gpu(findings *all, remat_context *context)
{
    char text[512];
    const bool found = remat_device_describe(context, "cuda", text, sizeof text) == REMAT_OK;
    add(all, "gpu", NULL, "%s", found ? text : remat_context_message(context));
}

static void find_memory(findings *all)
{
    char text[512];
    machine_memory memory;
    machine_read_memory(&memory);
    add_size(all, "memory", NULL, memory.total);
    add_size(all, "available", NULL, memory.available);
    add_size(all, "swap", memory.swap_used > 0 ? "some of it is in use: measured times are unreliable" : NULL,
             memory.swap_total);
    add_size(all, "group limit",
             memory.group < memory.total ? "a budget must be below this, not only below the memory" : NULL,
             memory.group);
    add_size(all, "address space", "RLIMIT_AS: a budget has to stay below this", memory.address_space);
    add_size(all, "data", "RLIMIT_DATA: a budget has to stay below this", memory.data);
    add_size(all, "locked", NULL, memory.locked);
    add_size(all, "stack", NULL, memory.stack);
    add_size(all, "page size", NULL, memory.page);
    if (machine_huge_pages(text, sizeof text))
        add(all, "huge pages", NULL, "%s", text);
}

static void print_json(const findings *all)
{
    printf("{\"format\": \"remat-doctor\", \"version\": 1, \"findings\": [");
    for (size_t i = 0; i < all->count; i++) {
        printf("%s\n  {\"name\": ", i ? "," : "");
        run_text_json_quoted(stdout, all->list[i].name);
        printf(", \"value\": ");
        run_text_json_quoted(stdout, all->list[i].value);
        if (all->list[i].advice) {
            printf(", \"advice\": ");
            run_text_json_quoted(stdout, all->list[i].advice);
        }
        printf("}");
    }
    printf("]}\n");
}

int command_doctor(remat_context *context, int argc, char **argv)
{
    bool json = false;
    command_parse(&argp, argc, argv, &json);
    findings all = {.count = 0};
    find_program(&all);
    find_processor(&all);
    find_gpu(&all, context);
    find_memory(&all);
    if (json) {
        print_json(&all);
        return 0;
    }
    for (size_t i = 0; i < all.count; i++) {
        printf("%-14s %s\n", all.list[i].name, all.list[i].value);
        if (all.list[i].advice)
            printf("%-14s ! %s\n", "", all.list[i].advice);
    }
    return 0;
}
