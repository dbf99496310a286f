#include "faults/fault_scene.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char program[PATH_MAX], work[PATH_MAX];
static bool sanitized;
static const fault_scene *referenced; /* whose outputs are in SCENE_REFERENCE */

/* ---- running ---- */

static bool launch(traced_run run, const char *command, traced_result *result)
{
    enum { WORDS = 32 };
    char text[1024];
    const char *argv[WORDS] = {program};
    int words = 1;
    snprintf(text, sizeof text, "%s", command);
    for (char *word = strtok(text, " "); word && words < WORDS - 1; word = strtok(NULL, " "))
        argv[words++] = word;
    run.argv = argv;
    return traced_run_do(&run, result);
}

void fault_command_run(const char *folder, const char *command, traced_result *result)
{
    /* What the scene printed and said stays there. */
    const traced_run run = {.folder = folder, .out = "printed-then", .err = SCENE_SAID_THEN};
    launch(run, command, result);
}

void fault_scene_give_up(const char *what, const traced_result *result)
{
    file_text why = file_text_read(SCENE_SAID_THEN);
    fprintf(stderr, "faults: remat %s fails undisturbed, with %d: %s\n", what, result->code, why.bytes);
    exit(99);
}

/* What every run of the scene finds. */
static void reset(const fault_scene *scene)
{
    folder_remove(SCENE_FOLDER);
    folder_make(SCENE_FOLDER);
    folder_copy(SCENE_INPUTS, SCENE_FOLDER);
    for (int i = 0; i < SCENE_FILES; i++)
        if (scene->files[i].kind == PRODUCT_EXACT || scene->files[i].kind == PRODUCT_TIMED ||
            scene->files[i].kind == PRODUCT_ADAPTER)
            file_text_write(path_in(SCENE_FOLDER, scene->files[i].file), SCENE_OLD, strlen(SCENE_OLD));
}

static traced_run run_of(const fault_scene *scene)
{
    static char input[PATH_MAX];
    if (scene->input)
        snprintf(input, sizeof input, "%s", path_in(SCENE_FOLDER, scene->input));
    return (traced_run){.library = "../preloaded.so",
                        .folder = SCENE_FOLDER,
                        .in = scene->input ? input : NULL,
                        .out = SCENE_PRINTED,
                        .err = SCENE_SAID,
                        .spare_pages = sanitized};
}

void fault_scene_repeat(const fault_scene *scene, traced_result *result)
{
    traced_run run = run_of(scene);
    run.err = SCENE_SAID_THEN;
    launch(run, scene->command, result);
}

static void make_reference(const fault_scene *scene)
{
    traced_result result;
    reset(scene);
    fault_scene_repeat(scene, &result);
    if (result.code != 0)
        fault_scene_give_up(scene->command, &result);
    folder_remove(SCENE_REFERENCE);
    folder_make(SCENE_REFERENCE);
    folder_copy(SCENE_FOLDER, SCENE_REFERENCE);
    file_text text = file_text_read(SCENE_PRINTED);
    file_text_write(path_in(SCENE_REFERENCE, SCENE_PRINTED), text.bytes, text.count);
    file_text_free(&text);
    referenced = scene;
}

static bool run_new(const fault_scene *scene, traced_run run, traced_result *result)
{
    if (referenced != scene)
        make_reference(scene);
    reset(scene);
    return launch(run, scene->command, result);
}

bool fault_scene_run(const fault_scene *scene, fault_mode mode, unsigned long long number, traced_result *result)
{
    traced_run run = run_of(scene);
    run.mode = mode;
    run.number = number;
    return run_new(scene, run, result);
}

bool fault_scene_kill(const fault_scene *scene, int signal, unsigned long after, traced_result *result)
{
    traced_run run = run_of(scene);
    run.signal = signal;
    run.kill_after = after;
    return run_new(scene, run, result);
}

/* ---- beginning and end ---- */

static _Noreturn void refuse(const char *what)
{
    perror(what);
    exit(99);
}

static void set_environment(void)
{
    setenv("TMPDIR", path_in(work, SCENE_FOLDER "/tmp"), 1);
    setenv("HOME", path_in(work, SCENE_FOLDER "/home"), 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TERM", "dumb", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0", 1); /* the leak detector is a tracer itself */
    static const char *const unset[] = {"NO_COLOR", "COLUMNS", "LINES", "ARGP_HELP_FMT", "LD_PRELOAD"};
    for (size_t i = 0; i < sizeof unset / sizeof unset[0]; i++)
        unsetenv(unset[i]);
}

void fault_scenes_start(const char *the_program, const char *the_library, bool is_sanitized)
{
    sanitized = is_sanitized;
    char sources[PATH_MAX];
    const char *temporary = getenv("TMPDIR");
    if (!temporary) /* in memory, if possible: thousands of files are synced */
        temporary = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    file_text library = file_text_read(the_library);
    snprintf(work, sizeof work, "%s/remat-faults-XXXXXX", temporary);
    if (!realpath(the_program, program) || !library.bytes)
        refuse("faults: REMAT or REMAT_FAULTS");
    if (!getcwd(sources, sizeof sources) || !mkdtemp(work) || chdir(work) != 0)
        refuse("faults: a folder for temporary files");
    /* Under a name without spaces, which end a name in LD_PRELOAD. */
    file_text_write("preloaded.so", library.bytes, library.count);
    file_text_free(&library);
    set_environment();
    fault_scene_make_inputs(sources);
}

void fault_scenes_end(void)
{
    folder_remove(work);
}
