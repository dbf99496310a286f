#include "faults/fault_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static file_text read_product(const char *folder_of, const char *name, product_kind kind)
{
    file_text text = file_text_read(path_in(folder_of, name));
    if (kind == PRODUCT_TIMED || kind == PRODUCT_GROWING || kind == PRODUCT_APPENDED)
        file_text_strip_numbers(&text);
    return text;
}

bool fault_scene_resumes(const char *file)
{
    char command[PATH_MAX];
    traced_result result;
    snprintf(command, sizeof command, "train model.ini -j 1 --steps " SCENE_STEPS " -q --resume %s --save ended.st",
             file);
    fault_command_run(SCENE_FOLDER, command, &result);
    file_text ended = file_text_read(path_in(SCENE_FOLDER, "ended.st")),
              wanted = file_text_read(path_in(SCENE_REFERENCE, SCENE_TRAINING));
    bool same = result.code == 0 && file_text_same(&ended, &wanted);
    file_text_free(&ended);
    file_text_free(&wanted);
    unlink(path_in(SCENE_FOLDER, "ended.st"));
    return same;
}

typedef struct leftover_search {
    const fault_scene *scene;
    file_text said;
    char *found;
} leftover_search;

static void look_at(void *user, const char *relative)
{
    leftover_search *search = user;
    for (int i = 0; i < SCENE_FILES; i++)
        if (search->scene->files[i].file && strcmp(relative, search->scene->files[i].file) == 0)
            return;
    const char *slash = strrchr(relative, '/'), *instead = strstr(relative, "remat-");
    if (access(path_in(SCENE_INPUTS, relative), F_OK) == 0 ||
        file_text_has(&search->said, slash ? slash + 1 : relative))
        return;
    if (instead && slash && slash > instead) { /* in a folder that is named */
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - instead), instead);
        if (file_text_has(&search->said, folder))
            return;
    }
    snprintf(search->found, PATH_MAX, "%s", relative);
}

const char *fault_scene_leftover(const fault_scene *scene)
{
    static char found[PATH_MAX];
    found[0] = 0;
    leftover_search search = {scene, file_text_read(SCENE_SAID), found};
    folder_walk(SCENE_FOLDER, look_at, &search);
    file_text_free(&search.said);
    return found[0] ? found : NULL;
}

typedef struct instead_search {
    char path[PATH_MAX];
} instead_search;

static void look_for_instead(void *user, const char *relative)
{
    instead_search *search = user;
    const char *slash = strrchr(relative, '/'), *name = slash ? slash + 1 : relative;
    size_t length = strlen(name), ending = strlen(SCENE_TRAINING);
    if (strncmp(name, "remat-", 6) == 0 && length > ending && strcmp(name + length - ending, SCENE_TRAINING) == 0)
        snprintf(search->path, sizeof search->path, "%s", relative);
}

/* Where nothing is saved: no step was taken, or it is said that the training is lost. */
static const char *judge_lost(void)
{
    file_text words = file_text_read(SCENE_SAID), log = file_text_read(path_in(SCENE_FOLDER, "run.jsonl")),
              before = file_text_read(path_in(SCENE_INPUTS, "run.jsonl"));
    bool stepped =
        file_text_has(&words, "step 1/") || file_text_has(&words, "step 3/") || (log.bytes && log.count > before.count);
    bool told = file_text_has(&words, "not saved");
    file_text_free(&words);
    file_text_free(&log);
    file_text_free(&before);
    return !stepped || told ? NULL : "steps were taken, nothing is saved and nothing says so";
}

/* A training is saved in its file or in another that was named, or no step was taken, or it is said that it is lost. */
static const char *judge_training(const file_text *old, const file_text *now, const file_text *wanted, bool done,
                                  bool killed)
{
    static instead_search instead;
    if (file_text_same(now, wanted))
        return NULL;
    if (done)
        return "the training is not saved";
    if (!file_text_same(now, old))
        return fault_scene_resumes(SCENE_TRAINING) ? NULL : "what is saved does not go on to the same bits";
    if (killed)
        return NULL;
    instead.path[0] = 0;
    folder_walk(SCENE_FOLDER, look_for_instead, &instead);
    if (instead.path[0])
        return fault_scene_resumes(instead.path) ? NULL : "what is saved elsewhere does not go on to the same bits";
    return judge_lost();
}

/* The same of one that is saved to a folder, where less steps make other weights. */
static const char *judge_adapter(bool is_old, bool whole, bool done, bool killed)
{
    file_text words = file_text_read(SCENE_SAID);
    bool instead = file_text_has(&words, " instead"), saved = file_text_has(&words, "was saved to");
    file_text_free(&words);
    if (whole || (!done && !is_old && saved))
        return NULL;
    if (done || !is_old)
        return done ? "is not complete" : "is neither the old nor the new one";
    return killed || instead ? NULL : judge_lost();
}

/* As the undisturbed run writes it, up to where this run ended. */
static bool log_is_right(const file_text *now, const file_text *wanted)
{
    size_t same = 0;
    while (same < now->count && same < wanted->count && now->bytes[same] == wanted->bytes[same])
        same++;
    const char *rest = now->bytes + same;
    if (!now->bytes || !*rest || strcmp(rest, "\n]}\n") == 0) /* a trace that ends earlier */
        return now->bytes;
    while (rest > now->bytes && rest[-1] != '\n')
        rest--;
    return strncmp(rest, "{\"end\":true", 11) == 0;
}

static const char *judge_product(const char *name, product_kind kind, bool done, bool warned, bool killed)
{
    file_text old = read_product(SCENE_INPUTS, name, kind), now = read_product(SCENE_FOLDER, name, kind),
              wanted = read_product(SCENE_REFERENCE, name, kind);
    bool whole = file_text_same(&now, &wanted), is_old = file_text_has(&now, "old\n") && now.count == 4;
    const char *wrong = NULL;
    switch (kind) {
    case PRODUCT_EXACT:
    case PRODUCT_TIMED:
        if (!whole && (done || !is_old))
            wrong = done ? "is not complete" : "is neither the old nor the new one";
        break;
    case PRODUCT_GROWING:
    case PRODUCT_APPENDED:
        if (!whole && done && !warned)
            wrong = "is not complete, and nothing is said";
        else if (!log_is_right(&now, &wanted) && !file_text_same(&now, &old))
            wrong = "is damaged";
        else if (kind == PRODUCT_APPENDED && !file_text_begins(&now, &old))
            wrong = "has lost what was there before";
        break;
    case PRODUCT_ADAPTER: wrong = judge_adapter(is_old, whole, done, killed); break;
    case PRODUCT_TRAINING: wrong = judge_training(&old, &now, &wanted, done, killed); break;
    default: break;
    }
    file_text_free(&old);
    file_text_free(&now);
    file_text_free(&wanted);
    return wrong;
}

static const char *judge_files(const fault_scene *scene, bool done, bool warned, bool killed)
{
    static char complaint[200];
    for (int i = 0; i < SCENE_FILES; i++) {
        const char *wrong = scene->files[i].file
                                ? judge_product(scene->files[i].file, scene->files[i].kind, done, warned, killed)
                                : NULL;
        if (wrong) {
            snprintf(complaint, sizeof complaint, "%s: %s", scene->files[i].file, wrong);
            return complaint;
        }
    }
    return NULL;
}

static bool printed_whole(const fault_scene *scene)
{
    file_text now = file_text_read(SCENE_PRINTED), wanted = file_text_read(path_in(SCENE_REFERENCE, "printed"));
    if (scene->printed == PRODUCT_TIMED) {
        file_text_strip_numbers(&now);
        file_text_strip_numbers(&wanted);
    }
    bool same = scene->printed == PRODUCT_ANY || file_text_same(&now, &wanted);
    file_text_free(&now);
    file_text_free(&wanted);
    return same;
}

/* Everything is as before or new, and the next run is not disturbed by what this one left. */
static const char *judge_killed(const fault_scene *scene, const traced_result *result)
{
    traced_result next;
    if (result->code >= 0)
        return "it was not killed";
    const char *wrong = judge_files(scene, false, false, true);
    if (wrong)
        return wrong;
    fault_scene_repeat(scene, &next);
    if (next.code != 0)
        return "the next run fails";
    for (int i = 0; i < SCENE_FILES && !wrong; i++)
        if (scene->files[i].kind == PRODUCT_EXACT || scene->files[i].kind == PRODUCT_TIMED ||
            scene->files[i].kind == PRODUCT_ADAPTER || scene->files[i].kind == PRODUCT_TRAINING)
            wrong = judge_product(scene->files[i].file, scene->files[i].kind, true, false, false);
    if (!wrong && fault_scene_leftover(scene))
        wrong = "the next run does not remove what was left";
    return wrong;
}

const char *fault_scene_judge(const fault_scene *scene, fault_mode mode, const traced_result *result)
{
    static char complaint[400];
    file_text words = file_text_read(SCENE_SAID);
    bool silent = words.count == 0, warned = file_text_has(&words, "warning: ");
    file_text_free(&words);
    if (result->timed_out)
        return "it did not end";
    if (mode == FAULT_KILL)
        return judge_killed(scene, result);
    if (result->code < 0) {
        snprintf(complaint, sizeof complaint, "ended by signal %d", result->signal);
        return complaint;
    }
    bool done = result->code == 0;
    if (!done && result->code != 5 && result->code != 6) {
        snprintf(complaint, sizeof complaint, "exit code %d", result->code);
        return complaint;
    }
    if (!done && silent)
        return "no message";
    if (done && !printed_whole(scene))
        return "exit code 0, and standard output is not complete";
    const char *leftover = fault_scene_leftover(scene);
    if (leftover && strcmp(result->call, "unlinkat") != 0) {
        snprintf(complaint, sizeof complaint, "leaves %.300s", leftover);
        return complaint;
    }
    return judge_files(scene, done, warned, false);
}
