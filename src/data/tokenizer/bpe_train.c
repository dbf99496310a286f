/* The most frequent pair of neighbours becomes a token, in all words at once; then the next. Pairs know the words that may
 * have them, so that a merge touches only these. The heap holds counts that may be out of date: a pair whose count fell is
 * put back when it comes up. */
#include "data/tokenizer/bpe_train.h"

#include "base/alloc.h"
#include "base/heap.h"
#include "data/tokenizer/byte_letters.h"

#include <string.h>

#define NONE    UINT32_MAX
#define NO_PAIR UINT64_MAX

/* A pair of tokens. */
typedef struct pair_entry {
    uint64_t pair;
    uint64_t count;
    uint32_t place; /* the last of the words that have it; NONE: none */
} pair_entry;

/* A word that has a pair, and the one before it in the list. */
typedef struct pair_place {
    uint32_t word, before;
} pair_place;

/* The tokens of a word that are left. */
typedef struct word_tokens {
    size_t at;
    uint32_t count;
    uint32_t seen; /* the merge that looked at it last */
} word_tokens;

typedef struct trainer_state {
    bpe_training *training;
    remat_context *context;
    uint32_t *tokens; /* of all words */
    word_tokens *words;
    size_t token_count, word_count;
    pair_entry *pairs; /* a hash table */
    size_t pair_slots, pair_count;
    pair_place *places;
    size_t place_count, place_capacity;
    item_heap heap; /* of pairs */
} trainer_state;

/* ---- pairs ---- */

static size_t pair_slot(const trainer_state *state, uint64_t pair)
{
    size_t mask = state->pair_slots - 1, slot = (size_t)((pair * 0x9e3779b97f4a7c15u) >> 32) & mask;
    while (state->pairs[slot].pair != pair && state->pairs[slot].pair != NO_PAIR)
        slot = (slot + 1) & mask;
    return slot;
}

static remat_status widen_pairs(trainer_state *state)
{
    size_t old_slots = state->pair_slots, wanted = old_slots ? 2 * old_slots : 4096;
    pair_entry *old = state->pairs, *pairs = remat_alloc(state->context, wanted, sizeof *pairs);
    if (!pairs)
        return REMAT_NO_MEMORY;
    memset(pairs, 0xff, wanted * sizeof *pairs);
    state->pairs = pairs;
    state->pair_slots = wanted;
    for (size_t i = 0; i < old_slots; i++)
        if (old[i].pair != NO_PAIR)
            pairs[pair_slot(state, old[i].pair)] = old[i];
    remat_release(state->context, old, old_slots, sizeof *old);
    return REMAT_OK;
}

static remat_status find_pair(trainer_state *state, uint32_t left, uint32_t right, pair_entry **entry)
{
    if (state->pair_count * 2 >= state->pair_slots)
        REMAT_TRY(widen_pairs(state));
    uint64_t pair = (uint64_t)left << 32 | right;
    *entry = &state->pairs[pair_slot(state, pair)];
    if ((*entry)->pair == NO_PAIR) {
        **entry = (pair_entry){pair, 0, NONE};
        state->pair_count++;
    }
    return REMAT_OK;
}

/* The largest count first, then the smallest ids. */
static remat_status push(trainer_state *state, const pair_entry *entry)
{
    return heap_push(state->context, &state->heap, (heap_item){~entry->count, entry->pair, 0});
}

/* ---- words ---- */

/* Counts the pairs of a word. A pair that has become more frequent goes to the heap; so does one that is new. */
static remat_status count_pairs(trainer_state *state, uint32_t which, bool push_all)
{
    const word_tokens *word = &state->words[which];
    const uint32_t *tokens = state->tokens + word->at;
    for (uint32_t i = 0; i + 1 < word->count; i++) {
        pair_entry *entry;
        REMAT_TRY(find_pair(state, tokens[i], tokens[i + 1], &entry));
        entry->count += state->training->counts[which];
        if (entry->place == NONE || state->places[entry->place].word != which) {
            if (state->place_count == NONE)
                return remat_fail(state->context, REMAT_INVALID, NULL, "the text is too large to train on");
            REMAT_TRY(remat_grow(state->context, (void **)&state->places, &state->place_capacity,
                                 state->place_count + 1, sizeof *state->places));
            state->places[state->place_count] = (pair_place){which, entry->place};
            entry->place = (uint32_t)state->place_count++;
        }
        if (push_all)
            REMAT_TRY(push(state, entry));
    }
    return REMAT_OK;
}

static remat_status discount_pairs(trainer_state *state, uint32_t which)
{
    const word_tokens *word = &state->words[which];
    const uint32_t *tokens = state->tokens + word->at;
    for (uint32_t i = 0; i + 1 < word->count; i++) {
        pair_entry *entry;
        REMAT_TRY(find_pair(state, tokens[i], tokens[i + 1], &entry));
        entry->count -= state->training->counts[which];
    }
    return REMAT_OK;
}

static bool has_pair(const trainer_state *state, const word_tokens *word, uint32_t left, uint32_t right)
{
    const uint32_t *tokens = state->tokens + word->at;
    for (uint32_t i = 0; i + 1 < word->count; i++)
        if (tokens[i] == left && tokens[i + 1] == right)
            return true;
    return false;
}

static remat_status merge_in_word(trainer_state *state, uint32_t which, const trained_merge *merge)
{
    word_tokens *word = &state->words[which];
    uint32_t *tokens = state->tokens + word->at, kept = 0;
    if (!has_pair(state, word, merge->left, merge->right))
        return REMAT_OK;
    REMAT_TRY(discount_pairs(state, which));
    for (uint32_t i = 0; i < word->count; kept++) {
        bool is_pair = i + 1 < word->count && tokens[i] == merge->left && tokens[i + 1] == merge->right;
        tokens[kept] = is_pair ? merge->id : tokens[i];
        i += is_pair ? 2 : 1;
    }
    word->count = kept;
    return count_pairs(state, which, true);
}

/* ---- merging ---- */

/* The token of two joined. */
static remat_status join(trainer_state *state, uint32_t left, uint32_t right, uint32_t *id)
{
    byte_map *tokens = &state->training->tokens;
    uint32_t first = state->training->first;
    byte_string a = tokens->strings[left - first], b = tokens->strings[right - first];
    unsigned char *joined = remat_alloc(state->context, a.length + b.length, 1);
    if (!joined)
        return REMAT_NO_MEMORY;
    memcpy(joined, tokens->bytes + a.at, a.length);
    memcpy(joined + a.length, tokens->bytes + b.at, b.length);
    remat_status status = byte_map_add(tokens, joined, a.length + b.length, id);
    *id += first;
    remat_release(state->context, joined, a.length + b.length, 1);
    return status;
}

static remat_status merge_pair(trainer_state *state, const pair_entry *entry)
{
    bpe_training *training = state->training;
    trained_merge merge = {.left = (uint32_t)(entry->pair >> 32), .right = (uint32_t)entry->pair};
    uint32_t place = entry->place;
    REMAT_TRY(join(state, merge.left, merge.right, &merge.id));
    REMAT_TRY(remat_grow(state->context, (void **)&training->merges, &training->merge_capacity,
                         training->merge_count + 1, sizeof *training->merges));
    training->merges[training->merge_count++] = merge;
    for (uint32_t number = (uint32_t)training->merge_count; place != NONE; place = state->places[place].before) {
        uint32_t which = state->places[place].word;
        if (state->words[which].seen == number)
            continue;
        state->words[which].seen = number;
        REMAT_TRY(merge_in_word(state, which, &merge));
    }
    return REMAT_OK;
}

static remat_status merge_pairs(trainer_state *state)
{
    bpe_training *training = state->training;
    while (training->first + training->tokens.count < training->vocabulary && state->heap.count) {
        heap_item top = heap_pop(&state->heap);
        uint64_t count = ~top.key;
        pair_entry *entry = &state->pairs[pair_slot(state, top.second_key)];
        if (entry->count != count) {
            /* Larger counts are in the heap already. */
            if (entry->count < count && entry->count > 0)
                REMAT_TRY(push(state, entry));
            continue;
        }
        if (count < training->least || count == 0)
            return REMAT_OK;
        pair_entry taken = *entry;
        entry->place = NONE; /* the words that still have it are listed anew */
        REMAT_TRY(merge_pair(state, &taken));
    }
    return REMAT_OK;
}

/* ---- the beginning ---- */

/* The id of every byte: in the order of their letters. */
static remat_status add_bytes(bpe_training *training, uint32_t ids[256])
{
    for (uint32_t letter = 0; letter < 0x200; letter++) {
        int byte = byte_of_letter(letter);
        if (byte < 0)
            continue;
        unsigned char one = (unsigned char)byte;
        REMAT_TRY(byte_map_add(&training->tokens, &one, 1, &ids[byte]));
        ids[byte] += training->first;
    }
    return REMAT_OK;
}

static remat_status split_words(trainer_state *state)
{
    const byte_map *words = state->training->words;
    uint32_t ids[256];
    REMAT_TRY(add_bytes(state->training, ids));
    state->word_count = words->count;
    state->token_count = words->byte_count;
    state->words = remat_alloc_zeroed(state->context, state->word_count, sizeof *state->words);
    state->tokens = remat_alloc(state->context, state->token_count, sizeof *state->tokens);
    if (!state->words || !state->tokens)
        return REMAT_NO_MEMORY;
    for (size_t i = 0; i < words->byte_count; i++)
        state->tokens[i] = ids[words->bytes[i]];
    for (size_t i = 0; i < words->count; i++) {
        if (words->strings[i].length > UINT32_MAX / 2)
            return remat_fail(state->context, REMAT_INVALID, NULL, "a word of the text is too long");
        state->words[i] = (word_tokens){words->strings[i].at, (uint32_t)words->strings[i].length, 0};
        REMAT_TRY(count_pairs(state, (uint32_t)i, false));
    }
    for (size_t i = 0; i < state->pair_slots; i++)
        if (state->pairs[i].pair != NO_PAIR)
            REMAT_TRY(push(state, &state->pairs[i]));
    return REMAT_OK;
}

remat_status bpe_train(bpe_training *training)
{
    trainer_state state = {.training = training, .context = training->context};
    remat_status status = split_words(&state);
    if (status == REMAT_OK)
        status = merge_pairs(&state);
    remat_release(state.context, state.words, state.word_count, sizeof *state.words);
    remat_release(state.context, state.tokens, state.token_count, sizeof *state.tokens);
    remat_release(state.context, state.pairs, state.pair_slots, sizeof *state.pairs);
    remat_release(state.context, state.places, state.place_capacity, sizeof *state.places);
    heap_end(state.context, &state.heap);
    return status;
}

void bpe_training_end(bpe_training *training)
{
    byte_map_end(&training->tokens);
    remat_release(training->context, training->merges, training->merge_capacity, sizeof *training->merges);
}
