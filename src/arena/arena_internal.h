/* Shared inside the arena solver only. Sizes, offsets and heights are counted
 * in alignment units here; bytes appear only at the public boundary. */
#ifndef REMAT_ARENA_ARENA_INTERNAL_H
#define REMAT_ARENA_ARENA_INTERNAL_H

#include "arena/placement.h"

typedef struct {
    uint64_t size;
    uint64_t length;     /* upper - lower, in the caller's time */
    uint32_t begin, end; /* ranks of lower and upper among all moments */
    uint32_t row;        /* index in the caller's array */
} arena_item;

/* A part is a run of items that no other item overlaps in time. Its items are
 * sorted by begin, longest first; a placement is one offset per item. */
typedef struct {
    const arena_item *items;
    uint32_t count;
    uint64_t *offsets;    /* best placement so far */
    uint64_t height;      /* its height */
    uint64_t load;        /* most units live at one moment */
    uint64_t lower_bound; /* load, or a larger bound that the search has proven */
} arena_part;

/* arena_memory.c */
void *arena_array(remat_context *context, size_t count, size_t element);
void *arena_array_grow(remat_context *context, void *array, size_t old_bytes, size_t count, size_t element);
void arena_release(remat_context *context, void *block);
void arena_sort(uint32_t *order, const uint64_t *keys, uint32_t *scratch, uint32_t count);

/* arena_parts.c */
typedef struct {
    arena_item *items;
    uint64_t *offsets;
    arena_part *parts;
    uint32_t item_count, part_count;
} arena_problem;
remat_status arena_problem_create(remat_context *context, arena_problem *problem, const remat_lifetime *lifetimes,
                                  size_t count, uint64_t alignment);
void arena_problem_destroy(remat_context *context, arena_problem *problem);
uint64_t arena_height_of(const arena_part *part, const uint64_t *offsets);

/* arena_skyline.c and arena_sweep.c: each tries to improve the part's best placement, and returns early
 * when the height is within the goal. */
remat_status arena_skyline(remat_context *context, arena_part *part, uint64_t goal);
remat_status arena_sweep(remat_context *context, arena_part *part, uint64_t goal);

/* arena_model.c: the part as the search sees it. A section is a maximal set of items
 * that are all live at one moment. Every item is in a contiguous run of sections, and
 * two items overlap in time exactly when they share a section.
 *
 *   sections    0   1   2   3        members of 1: A B C
 *   A         |=======|              first[B] = 0, last[B] = 2
 *   B         |===========|
 *   C             |=======|
 *   D                     |===|  */
typedef struct {
    uint32_t item;
    uint64_t old_offset; /* ARENA_WAS_WAITING: the item was placed at this step */
} arena_step;

#define ARENA_WAS_WAITING UINT64_MAX

typedef struct {
    uint32_t begin, end;   /* component: waiting items with these indices */
    uint32_t cursor;       /* sub-components before this index are solved */
    uint32_t item;         /* being tried at its lowest offset */
    size_t entered, tried; /* lengths of the trail */
    uint64_t state[2];     /* hash of the component on entry */
} arena_frame;

/* What the waiting items among 64 in a row come to; `current` is false when one of them has changed since. */
typedef struct {
    uint64_t hash[2]; /* sum over them */
    uint32_t lowest;  /* the one to try first; UINT32_MAX: none waits */
    uint32_t end;     /* index behind the last of them; 0: none waits */
    uint32_t reach;   /* the largest last section */
    bool current;
} arena_item_block;

/* The section with the least room among 64 in a row; UINT32_MAX: none has a waiting member. */
typedef struct {
    uint32_t tightest;
    bool current;
} arena_section_block;

#define ARENA_BLOCK 64u

typedef enum { ARENA_LOWEST, ARENA_TIGHTEST } arena_rule;

typedef struct {
    remat_context *context;
    const arena_part *part;
    uint32_t count, section_count;
    /* per item */
    uint32_t *first, *last;
    uint64_t *offset;     /* lowest still possible; final once placed */
    bool *waiting;        /* not placed yet */
    uint64_t *preference; /* larger: tried first among equals */
    /* per section */
    uint32_t *member_begin; /* into members; waiting ones come first */
    uint32_t *members;
    uint32_t *waiting_count;
    uint32_t *starter_begin; /* items whose first section this is: a run of indices */
    uint64_t *load;          /* units waiting */
    uint64_t *full_load;
    uint64_t *floor;               /* lowest offset of a waiting member */
    uint64_t *blame;               /* how often it failed recently */
    uint64_t *dirty;               /* bit set of sections to propagate again */
    uint32_t dirty_from, dirty_to; /* all words of the bit set outside [from, to) are 0 */
    /* per 64 of them */
    arena_item_block *item_blocks;
    arena_section_block *section_blocks;
    /* search */
    arena_step *trail;
    size_t trail_count, trail_room;
    arena_frame *frames;
    uint64_t (*failed)[2]; /* states known to have no completion */
    uint64_t capacity, hash_seed;
    uint64_t nodes, fine_steps;
    arena_rule rule;
    bool out_of_memory;
} arena_model;

#define ARENA_FAILED_BITS 18
#define ARENA_NO_SECTION  UINT32_MAX

/* REMAT_OK with *model == NULL: the part is too large to search. */
remat_status arena_model_create(remat_context *context, const arena_part *part, arena_model **model);
void arena_model_destroy(arena_model *model);

/* arena_blocks.c. `begin` is a multiple of ARENA_BLOCK, and the whole block exists. */
void arena_hash_item(const arena_model *model, uint32_t item, uint64_t hash[2]);
/* The order in which items are tried; true where there is no best one yet: UINT32_MAX. */
bool arena_goes_before(const arena_model *model, uint32_t item, uint32_t best);
/* Less room to spare; among equals the lower floor. */
bool arena_is_tighter(const arena_model *model, uint32_t section, uint32_t best);
const arena_item_block *arena_items_at(arena_model *model, uint32_t begin);
uint32_t arena_tightest_at(arena_model *model, uint32_t begin);
/* For changes of preference, capacity or hash seed. Offsets and waiting items are followed by arena_propagate.c. */
void arena_blocks_forget(arena_model *model);

/* arena_propagate.c */
void arena_raise(arena_model *model, uint32_t item, uint64_t offset);
void arena_mark_all(arena_model *model);
bool arena_propagate(arena_model *model);
bool arena_put_down(arena_model *model, uint32_t item);
bool arena_lift_off(arena_model *model, uint32_t item);
void arena_undo(arena_model *model, size_t trail_count);
bool arena_rests_lowest(const arena_model *model, uint32_t item);

/* arena_search.c: one descent with the model's rule and preferences. */
typedef enum { ARENA_FOUND, ARENA_IMPOSSIBLE, ARENA_UNDECIDED, ARENA_FAILED_ALLOC } arena_outcome;
arena_outcome arena_descend(arena_model *model, uint64_t node_limit);
uint64_t arena_effort(const arena_model *model);

/* arena_restart.c: looks for a placement within the capacity. It restarts with several
 * strategies until the effort, which it decreases, is used up. */
arena_outcome arena_search(arena_model *model, uint64_t capacity, uint64_t *effort, uint64_t *offsets_out);

#endif
