#include "train/training_settings.h"

#include "base/error.h"
#include "base/number_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static size_t add(char *text, size_t used, const char *key, const char *value)
{
    if (used >= TRAINING_SETTINGS_TEXT)
        return used;
    return used + (size_t)snprintf(text + used, TRAINING_SETTINGS_TEXT - used, "%s%s=%s", used ? ", " : "", key, value);
}

/* Whether the rate of a step depends on how many there will be. */
static bool rate_needs_end(const optimizer_settings *optimizer)
{
    const uint32_t schedule = optimizer->schedule;
    return optimizer->decay_steps == 0 &&
           (schedule == RATE_COSINE || schedule == RATE_LINEAR || schedule == RATE_ONE_CYCLE);
}

void training_settings_write(const remat_trainer *trainer, char text[TRAINING_SETTINGS_TEXT])
{
    char value[PROPERTY_VALUE_TEXT];
    size_t used = 0;
    text[0] = 0;
    for (const property *about = model_optimizer_properties(); about->key; about++)
        used = add(text, used, about->key, property_print(about, &trainer->optimizer, value));
    number_print(trainer->settings.clip_norm, value);
    used = add(text, used, "clip_norm", value);
    if (!rate_needs_end(&trainer->optimizer))
        return;
    snprintf(value, sizeof value, "%" PRIu64, trainer->total_steps);
    add(text, used, "steps", value);
}

/* The value of a key in such a text, and how long it is; NULL if the key is not there. */
static const char *find(const char *text, const char *key, size_t *length)
{
    const size_t key_length = strlen(key);
    for (const char *at = text; at; at = strstr(at, ", ")) {
        at += at == text ? 0 : 2;
        if (strncmp(at, key, key_length) != 0 || at[key_length] != '=')
            continue;
        at += key_length + 1;
        *length = strcspn(at, ",");
        return at;
    }
    return NULL;
}

void training_settings_compare(const remat_trainer *trainer, const char *path, const char *saved)
{
    char now[TRAINING_SETTINGS_TEXT], changes[TRAINING_SETTINGS_TEXT] = "";
    size_t used = 0;
    training_settings_write(trainer, now);
    for (const char *at = now; at && used < sizeof changes; at = strstr(at, ", ")) {
        at += at == now ? 0 : 2;
        char key[PROPERTY_VALUE_TEXT];
        const int key_length = (int)strcspn(at, "=");
        snprintf(key, sizeof key, "%.*s", key_length, at);
        const char *value = at + key_length + 1;
        size_t length = strcspn(value, ","), saved_length = 0;
        const char *before = find(saved, key, &saved_length);
        if (!before || (saved_length == length && strncmp(before, value, length) == 0))
            continue;
        used += (size_t)snprintf(changes + used, sizeof changes - used, "%s%s%s is %.*s, it was %.*s", used ? "; " : "",
                                 key, strcmp(key, "steps") == 0 ? " (until which the learning rate changes)" : "",
                                 (int)length, value, (int)(saved_length < 40 ? saved_length : 40), before);
    }
    const remat_place place = {path, REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, NULL};
    if (used)
        remat_warn(trainer->context, &place, "the training goes on with other settings than before: %s", changes);
}
