#include "faults/kills.h"

#include "faults/fault_scene.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const fault_scene training = {
    "killed",
    "train model.ini -j 1 --steps 6 --save weights.st --save-every 1 --log run.jsonl -q",
    NULL,
    PRODUCT_NONE,
    {{SCENE_TRAINING, PRODUCT_TRAINING}, {"run.jsonl", PRODUCT_GROWING}}};

static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static unsigned long microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long)now.tv_sec * 1000000 + (unsigned long)now.tv_nsec / 1000;
}

/* Every line but the last is an object; the last one too, unless the program was killed while it wrote. */
static bool log_is_whole(bool to_the_end)
{
    file_text log = file_text_read(path_in(SCENE_FOLDER, "run.jsonl"));
    bool whole = true;
    for (const char *line = log.bytes; line && *line;) {
        const char *end = strchr(line, '\n');
        if (!end) {
            whole = whole && !to_the_end;
            break;
        }
        whole = whole && line[0] == '{' && end > line && end[-1] == '}';
        line = end + 1;
    }
    if (to_the_end)
        whole = whole && file_text_has(&log, "\"end\": true");
    file_text_free(&log);
    return whole;
}

static const char *judge(const traced_result *result, int signal)
{
    bool ended = result->code >= 0;
    if (result->timed_out)
        return "it did not end";
    if (ended && result->code != 0 && (signal == SIGKILL || result->code != 128 + signal))
        return "another exit code";
    if (!ended && result->signal != signal)
        return "ended by another signal";
    if (!log_is_whole(ended))
        return "the log is damaged";
    if (ended && fault_scene_leftover(&training))
        return "it leaves a file behind";
    if (!fault_scene_resumes(SCENE_TRAINING))
        return "what is saved does not go on to the same bits";
    if (fault_scene_leftover(&training))
        return "the next save leaves the dead writer's file behind";
    return NULL;
}

/* How long it takes undisturbed, the program's start included: the shortest of some runs, so that few end before the signal. */
static unsigned long find_duration(void)
{
    unsigned long least = ~0ul;
    traced_result result;
    for (int i = 0; i < 5; i++) {
        unsigned long began = microseconds();
        fault_scene_kill(&training, 0, 0, &result);
        unsigned long takes = microseconds() - began;
        if (i > 0 && takes < least) /* the first makes the reference too */
            least = takes;
    }
    return least;
}

unsigned long long kills_do(unsigned long long count, unsigned long long seed)
{
    static const int gentle[] = {SIGTERM, SIGINT, SIGHUP};
    uint64_t state = seed;
    unsigned long long findings = 0, cut = 0, saved = 0;
    unsigned long takes = find_duration();
    for (unsigned long long i = 0; cut + saved < count && i < 5 * count; i++) {
        traced_result result;
        int signal = i % 2 == 0 ? SIGKILL : gentle[i / 2 % 3];
        unsigned long after = 1 + (unsigned long)(draw(&state) % takes);
        fault_scene_kill(&training, signal, after, &result);
        cut += result.code < 0;
        saved += result.code > 0; /* 0: it was done before the signal came */
        const char *wrong = judge(&result, signal);
        if (!wrong)
            continue;
        file_text words = file_text_read(SCENE_SAID);
        findings++;
        printf("FAILED: kill %llu of --seed %llu, signal %d after %lu us: %s (exit code %d)\n  said: %.600s\n", i, seed,
               signal, after, wrong, result.code, words.bytes);
        file_text_free(&words);
    }
    printf("kills       %6llu, of which %llu ended the program at once and %llu after a save\n", cut + saved, cut,
           saved);
    return findings;
}
