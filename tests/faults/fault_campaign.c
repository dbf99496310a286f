/* Fails every allocation and every system call of many command lines in turn, and kills trainings at random moments. Nothing
 * may crash, succeed silently, leave files behind or lose a training.
 *
 *     fault_campaign [--every N] [--scene NAME] [--mode NAME] [--at N] [--kills N] [--seed N] [--verbose]
 *
 * --every N is for a sample: it takes all failures of a small command and all failed calls of a training, and every N-th of the
 * rest. --mode none runs kills only. REMAT names the program, REMAT_FAULTS the library to preload; with REMAT_SANITIZE=ON, only
 * the modes run that a sanitized program survives. */
#include "faults/fault_scene.h"
#include "faults/kills.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct campaign {
    unsigned long long every, at, kills, seed;
    const char *scene, *mode;
    bool verbose, sanitized;
    unsigned long long runs[FAULT_MODES], findings;
} campaign;

static void complain(campaign *of, const fault_scene *scene, fault_mode mode, unsigned long long number,
                     const traced_result *result, const char *wrong)
{
    file_text words = file_text_read(SCENE_SAID);
    of->findings++;
    printf("FAILED: --scene %s --mode %s --at %llu (%s): %s (exit code %d)\n  remat %s\n  said: %.600s\n", scene->name,
           fault_mode_names[mode], number, result->call, wrong, result->code, scene->command,
           words.bytes && words.count > 600 ? words.bytes + words.count - 600 : words.bytes);
    file_text_free(&words);
}

/* One failure after the other until the command has no more calls to fail. False where nothing can be traced. */
static bool fail_in_turn(campaign *of, const fault_scene *scene, fault_mode mode, unsigned long long every)
{
    enum { MOST = 100000 };
    /* Each mode begins elsewhere, so that a sample sees different calls. */
    unsigned long long number = of->at ? of->at : every == 1 ? 1 : 1 + (unsigned long long)mode % every;
    for (; number < MOST; number += every) {
        traced_result result;
        if (!fault_scene_run(scene, mode, number, &result))
            return false;
        if (!result.hit && !result.timed_out)
            break;
        of->runs[mode]++;
        const char *wrong = fault_scene_judge(scene, mode, &result);
        /* A message that cannot be written is the only thing that is lost then. */
        if (wrong && result.on_stderr && strcmp(wrong, "no message") == 0)
            wrong = NULL;
        if (wrong)
            complain(of, scene, mode, number, &result, wrong);
        else if (of->verbose)
            printf("%s %s %llu (%s): %d\n", scene->name, fault_mode_names[mode], number, result.call, result.code);
        if (of->at)
            break;
    }
    return true;
}

/* The sanitizers have their own allocator, which ends the program where the system has no memory; and they start slowly. */
static bool is_wanted(const campaign *of, fault_mode mode)
{
    bool sampled = !of->sanitized || mode == FAULT_CALL || mode == FAULT_SHORT;
    return sampled && (!of->mode || strcmp(of->mode, fault_mode_names[mode]) == 0);
}

/* All of a small command and all calls of a training are in every sample. Allocations are many, and bench takes long, because
 * it measures the machine. */
static unsigned long long stride(const campaign *of, const fault_scene *scene, fault_mode mode)
{
    bool many = mode == FAULT_ALLOCATION || mode == FAULT_NO_MEMORY, slow = strcmp(scene->name, "bench") == 0;
    if (of->every == 1)
        return slow && many ? 7 : 1;
    if ((strcmp(scene->name, "plan") == 0 && mode != FAULT_NO_MEMORY) ||
        (strcmp(scene->name, "train") == 0 && mode == FAULT_CALL && !of->sanitized))
        return 1;
    return of->every * (many ? 5 : of->sanitized ? 3 : 1) * (slow ? 3 : 1);
}

static bool run_scene(campaign *of, const fault_scene *scene)
{
    for (fault_mode mode = FAULT_NONE + 1; mode < FAULT_MODES; mode++)
        if (is_wanted(of, mode) && !fail_in_turn(of, scene, mode, stride(of, scene, mode)))
            return false;
    return true;
}

static void read_options(campaign *of, int argc, char **argv)
{
    static const struct option options[] = {
        {"every", 1, NULL, 'e'},   {"scene", 1, NULL, 's'},      {"mode", 1, NULL, 'm'},
        {"at", 1, NULL, 'a'},      {"kills", 1, NULL, 'k'},      {"seed", 1, NULL, 'r'},
        {"verbose", 0, NULL, 'v'}, {"kills-only", 0, NULL, 'o'}, {0}};
    for (int key; (key = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (key) {
        case 'e': of->every = strtoull(optarg, NULL, 10); break;
        case 's': of->scene = optarg; break;
        case 'm': of->mode = optarg; break;
        case 'a': of->at = strtoull(optarg, NULL, 10); break;
        case 'k': of->kills = strtoull(optarg, NULL, 10); break;
        case 'r': of->seed = strtoull(optarg, NULL, 10); break;
        case 'v': of->verbose = true; break;
        default: exit(2);
        }
    if (of->every == 0)
        of->every = 1;
}

int main(int argc, char **argv)
{
    campaign of = {.every = 1, .seed = 1};
    const char *program = getenv("REMAT"), *library = getenv("REMAT_FAULTS"), *sanitized = getenv("REMAT_SANITIZE");
    read_options(&of, argc, argv);
    if (!program || !library) {
        fputs("faults: REMAT and REMAT_FAULTS name the program and the library to preload\n", stderr);
        return 2;
    }
    of.sanitized = sanitized && strcmp(sanitized, "ON") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    fault_scenes_start(program, library, of.sanitized);
    bool traced = true;
    for (int i = 0; i < fault_scene_count && traced; i++)
        if (!of.scene || strcmp(of.scene, fault_scenes[i].name) == 0)
            traced = run_scene(&of, &fault_scenes[i]);
    if (of.kills)
        of.findings += kills_do(of.kills, of.seed);
    if (!getenv("KEEP"))
        fault_scenes_end();
    for (fault_mode mode = FAULT_NONE + 1; mode < FAULT_MODES; mode++)
        printf("%-11s %6llu failed in turn\n", fault_mode_names[mode], of.runs[mode]);
    printf("%llu findings\n", of.findings);
    return of.findings ? 1 : traced ? 0 : 77;
}
