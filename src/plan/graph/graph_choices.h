/* Choices of the tensors that a piece keeps, and the search for good ones. */
#ifndef REMAT_PLAN_GRAPH_GRAPH_CHOICES_H
#define REMAT_PLAN_GRAPH_GRAPH_CHOICES_H

#include "plan/graph/exchange_rate.h"
#include "plan/graph/graph_piece.h"

/* Sets of tensors worth keeping, to start a search from: `width` flags each, by the tensors' numbers in the graph. */
typedef struct keep_sets {
    uint8_t *flags;
    size_t count, capacity, width;
} keep_sets;

typedef struct piece_choice {
    piece_figures figures;
    uint32_t keep; /* where its flags stand */
    bool explored; /* its neighbours have been looked at */
} piece_choice;

/* Those that no other beats in everything. */
typedef struct piece_choices {
    const graph_piece *piece;
    bool alone;
    uint64_t output_bytes;
    piece_choice *list;
    size_t count, capacity;
    uint8_t *flags; /* inner_count a choice */
    size_t flag_count, flag_capacity;
} piece_choices;

/* What the choice holds while the output is needed too; alone, its peak. */
uint64_t choice_bytes(const piece_choices *choices, const piece_figures *figures);
const uint8_t *choice_keep(const piece_choices *choices, const piece_choice *choice);

/* The rate at which a byte costs `factor`/2^16 times a 64th of what the bytes of the piece cost on average, if all of it
 * is recomputed. */
exchange_rate piece_rate(const graph_piece *piece, uint64_t factor);

/* All choices of a small piece; of a larger one those that a search comes by, which begins with the seeds (or NULL). */
remat_status piece_choices_find(const graph_piece *piece, piece_evaluator *evaluator, bool alone,
                                const keep_sets *seeds, piece_choices *choices);
void piece_choices_release(piece_choices *choices);

#endif
