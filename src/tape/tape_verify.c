#include "tape/tape_object.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "store/chunk_hash.h"

#include <string.h>

/* A layer's output is made by every forward, the rest of its state only by those that save. Each part is noted by the
 * first forward that makes it and compared with from then on. A mode of the profile has a rest of its own kind. */
enum { PART_OUTPUT, PART_REST };

typedef struct layer_notes {
    uint64_t at[2];     /* where the part's hashes or copy are */
    uint16_t rest_mode; /* in which the rest was made */
    bool noted[2];
} layer_notes;

struct tape_verifier {
    layer_notes *layers;
    size_t layer_count;
    unsigned char *notes; /* hashes or copies of everything */
    uint64_t bytes;
};

static uint64_t rest_bytes(const remat_layer *layer, uint16_t mode)
{
    const remat_mode *is = &layer->modes[mode];
    return is->activation_bytes - (is->holds_output ? layer->output_bytes : 0);
}

/* What a note about so many bytes takes, in whole hashes. */
static uint64_t note_bytes(const remat_tape *tape, uint64_t bytes)
{
    if (tape->options.verify == REMAT_VERIFY_HASHES)
        return chunk_hash_count((size_t)bytes) * sizeof(uint64_t);
    return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
}

static remat_status lay_out(remat_tape *tape, struct tape_verifier *verifier)
{
    for (size_t i = 0; i < verifier->layer_count; i++) {
        const remat_layer *layer = &tape->profile->layers[i];
        uint64_t rest = 0;
        for (uint32_t k = 0; k < layer->mode_count; k++) {
            uint64_t bytes = rest_bytes(layer, (uint16_t)k);
            rest = bytes > rest ? bytes : rest;
        }
        verifier->layers[i].at[PART_OUTPUT] = verifier->bytes;
        verifier->layers[i].at[PART_REST] = verifier->bytes + note_bytes(tape, layer->output_bytes);
        if (!remat_add(&verifier->bytes, note_bytes(tape, layer->output_bytes)) ||
            !remat_add(&verifier->bytes, note_bytes(tape, rest)) || verifier->bytes > SIZE_MAX)
            return remat_fail(tape->context, REMAT_NO_MEMORY, NULL, "verifying would take more memory than can be had");
    }
    verifier->notes = remat_alloc(tape->context, (size_t)verifier->bytes, 1);
    return verifier->notes ? REMAT_OK : REMAT_NO_MEMORY;
}

remat_status tape_verify_create(remat_tape *tape)
{
    if (tape->options.verify == REMAT_VERIFY_OFF)
        return REMAT_OK;
    struct tape_verifier *made = tape->verifier = remat_alloc_zeroed(tape->context, 1, sizeof *made);
    if (!made)
        return REMAT_NO_MEMORY;
    made->layer_count = tape->profile->layer_count;
    made->layers = remat_alloc_zeroed(tape->context, made->layer_count, sizeof *made->layers);
    return made->layers ? lay_out(tape, made) : REMAT_NO_MEMORY;
}

void tape_verify_destroy(remat_tape *tape)
{
    struct tape_verifier *verifier = tape->verifier;
    if (!verifier)
        return;
    remat_release(tape->context, verifier->notes, (size_t)verifier->bytes, 1);
    remat_release(tape->context, verifier->layers, verifier->layer_count, sizeof *verifier->layers);
    remat_release(tape->context, verifier, 1, sizeof *verifier);
}

void tape_verify_begin(remat_tape *tape)
{
    for (size_t i = 0; i < tape->verifier->layer_count; i++)
        tape->verifier->layers[i].noted[PART_OUTPUT] = tape->verifier->layers[i].noted[PART_REST] = false;
}

/* ---- differences ---- */

/* A part of a layer's state as a forward made it just now, and the notes about it. */
typedef struct part {
    uint32_t layer;
    const char *name;
    const unsigned char *data;
    uint64_t bytes;
    unsigned char *notes;
} part;

#define NOT_DETERMINISTIC "; the forward callback does not make the same of the same input"

static remat_status chunk_differs(remat_tape *tape, const remat_place *place, const part *is, size_t chunk)
{
    uint64_t from = (uint64_t)chunk * CHUNK_HASH_BYTES, to = from + CHUNK_HASH_BYTES;
    return remat_fail(tape->context, REMAT_CHECK_FAILED, place,
                      "chunk %zu (bytes %llu to %llu) of its %s is not what it was the first time" NOT_DETERMINISTIC,
                      chunk, (unsigned long long)from, (unsigned long long)(to < is->bytes ? to : is->bytes) - 1,
                      is->name);
}

static remat_status element_differs(remat_tape *tape, const remat_place *place, const part *is)
{
    uint64_t at = 0;
    while (is->data[at] == is->notes[at])
        at++;
    uint64_t number = at / sizeof(float);
    if (tape->options.element != REMAT_FLOATS || (number + 1) * sizeof(float) > is->bytes)
        return remat_fail(tape->context, REMAT_CHECK_FAILED, place,
                          "byte %llu of its %s is %u, the first time it was %u" NOT_DETERMINISTIC,
                          (unsigned long long)at, is->name, is->data[at], is->notes[at]);
    float now, before;
    memcpy(&now, is->data + number * sizeof now, sizeof now);
    memcpy(&before, is->notes + number * sizeof before, sizeof before);
    return remat_fail(tape->context, REMAT_CHECK_FAILED, place,
                      "element %llu of its %s is %.9g, the first time it was %.9g" NOT_DETERMINISTIC,
                      (unsigned long long)number, is->name, (double)now, (double)before);
}

static remat_status compare(remat_tape *tape, const part *is)
{
    remat_place place = REMAT_PLACE_NOWHERE;
    place.layer = is->layer;
    place.field = remat_tape_phase_name(REMAT_PHASE_RECOMPUTE);
    if (tape->options.verify == REMAT_VERIFY_COPIES)
        return memcmp(is->data, is->notes, (size_t)is->bytes) == 0 ? REMAT_OK : element_differs(tape, &place, is);
    size_t chunk = chunk_hash_differs(is->data, (size_t)is->bytes, (const uint64_t *)(const void *)is->notes);
    return chunk == chunk_hash_count((size_t)is->bytes) ? REMAT_OK : chunk_differs(tape, &place, is, chunk);
}

static void note(remat_tape *tape, const part *is)
{
    if (tape->options.verify == REMAT_VERIFY_COPIES)
        memcpy(is->notes, is->data, (size_t)is->bytes);
    else
        chunk_hash_make(is->data, (size_t)is->bytes, (uint64_t *)(void *)is->notes);
}

static remat_status check_part(remat_tape *tape, const remat_tape_call *call, int which)
{
    struct tape_verifier *verifier = tape->verifier;
    layer_notes *notes = &verifier->layers[call->layer];
    const remat_layer *layer = &tape->profile->layers[call->layer];
    part is = {.layer = call->layer, .notes = verifier->notes + notes->at[which]};
    if (which == PART_OUTPUT) {
        is.name = "output";
        is.data = call->output;
        is.bytes = layer->output_bytes;
    } else {
        is.name = call->output == call->saved ? "state behind the output" : "state";
        is.bytes = rest_bytes(layer, call->mode);
        is.data = (unsigned char *)call->saved + (layer->modes[call->mode].activation_bytes - is.bytes);
    }
    if (is.bytes == 0)
        return REMAT_OK;
    if (notes->noted[which])
        return which == PART_OUTPUT || notes->rest_mode == call->mode ? compare(tape, &is) : REMAT_OK;
    note(tape, &is);
    notes->noted[which] = true;
    if (which == PART_REST)
        notes->rest_mode = call->mode;
    return REMAT_OK;
}

remat_status tape_verify_forward(remat_tape *tape, const remat_tape_call *call)
{
    uint64_t began = tape_clock();
    remat_status status = check_part(tape, call, PART_OUTPUT);
    if (status == REMAT_OK && call->saved)
        status = check_part(tape, call, PART_REST);
    tape->statistics.verify_ns += tape_clock() - began;
    return status;
}
