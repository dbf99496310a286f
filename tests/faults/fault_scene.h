/* Command lines that the fault tests run, each with what it reads and writes, and how a run of one is judged. */
#ifndef REMAT_TESTS_FAULT_SCENE_H
#define REMAT_TESTS_FAULT_SCENE_H

#include "faults/traced_run.h"
#include "faults/work_folder.h"

typedef enum product_kind {
    PRODUCT_NONE,
    PRODUCT_EXACT,    /* the same bytes in every run; a file is replaced whole */
    PRODUCT_TIMED,    /* the same but for numbers; a file is replaced whole */
    PRODUCT_GROWING,  /* written line by line, the same but for numbers */
    PRODUCT_APPENDED, /* the same, behind what is there */
    PRODUCT_TRAINING, /* a saved training */
    PRODUCT_ADAPTER,  /* of a training that is saved to a folder: the same bytes in every run, replaced whole */
    PRODUCT_ANY,      /* whatever it finds */
} product_kind;

enum { SCENE_FILES = 4 };

typedef struct fault_scene {
    const char *name, *command; /* words, with one space between */
    const char *input;          /* standard input; NULL: nothing */
    product_kind printed;
    struct {
        const char *file;
        product_kind kind;
    } files[SCENE_FILES];
} fault_scene;

/* scene_table.c */
extern const fault_scene fault_scenes[];
extern const int fault_scene_count;

/* The training that is saved in these scenes ends after this many steps. */
#define SCENE_TRAINING "weights.st"
#define SCENE_STEPS    "6"

/* In the folder of temporary files, which is the working folder from fault_scenes_start on. */
#define SCENE_INPUTS    "inputs"
#define SCENE_REFERENCE "reference" /* what the scene makes undisturbed */
#define SCENE_FOLDER    "run"       /* of the last run */
#define SCENE_PRINTED   "printed"   /* its standard output */
#define SCENE_SAID      "said"      /* its standard error */
#define SCENE_SAID_THEN "said-then" /* standard error of what ran after it */

/* What is in a file that the scene replaces. */
#define SCENE_OLD "old\n"

/* Makes the inputs of all scenes. Runs in the root of the sources. */
void fault_scenes_start(const char *program, const char *library, bool sanitized);
void fault_scenes_end(void);

/* Runs `scene`; its reference first, if it has none yet. False where nothing can be traced. */
bool fault_scene_run(const fault_scene *scene, fault_mode mode, unsigned long long number, traced_result *result);
/* The same with a signal after some microseconds; 0: without one. */
bool fault_scene_kill(const fault_scene *scene, int signal, unsigned long after, traced_result *result);
/* Once more in the folder as it is, undisturbed. */
void fault_scene_repeat(const fault_scene *scene, traced_result *result);

/* Any command, undisturbed. */
void fault_command_run(const char *folder, const char *command, traced_result *result);
/* Ends the test: something fails undisturbed. */
_Noreturn void fault_scene_give_up(const char *what, const traced_result *result);

/* scene_inputs.c */
void fault_scene_make_inputs(const char *sources);

/* ---- fault_judge.c: about the last run ---- */

/* NULL, or what is wrong. */
const char *fault_scene_judge(const fault_scene *scene, fault_mode mode, const traced_result *result);
/* Whether the training in `file` goes on to the bits of one that was never disturbed. */
bool fault_scene_resumes(const char *file);
/* A file that nobody asked for; NULL if there is none. */
const char *fault_scene_leftover(const fault_scene *scene);

#endif
