#include "data/permutation.h"

enum {
    ROUNDS = 8,
    FEWEST_BITS = 6, /* narrower halves would reach only a part of the orders of a few samples */
};

/* Streams of layers have small numbers; those of data start here, so that no two ever meet. */
#define SHUFFLE_STREAM 0xF0000000u

permutation permutation_make(uint64_t count, uint64_t seed, uint64_t epoch)
{
    permutation order = {.count = count, .bits = FEWEST_BITS};
    while ((uint64_t)1 << order.bits < count)
        order.bits++;
    order.stream = remat_random_stream(seed, SHUFFLE_STREAM + (uint32_t)(epoch >> 32), (uint32_t)epoch);
    return order;
}

/* A Feistel network: each round adds a random function of one half to the other half, which can always be undone, so
 * the whole is a permutation whatever the function is. The halves differ by a bit where `bits` is odd. */
static uint64_t network(const permutation *order, uint64_t value)
{
    uint32_t low_bits = order->bits / 2, high_bits = order->bits - low_bits;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t low = value & (((uint64_t)1 << low_bits) - 1), high = value >> low_bits;
        uint32_t random[4];
        remat_random_block(&order->stream, (uint64_t)round << 32 | low, random);
        high ^= random[0] & (((uint64_t)1 << high_bits) - 1);
        /* The halves change places, and so do their widths. */
        value = low << high_bits | high;
        uint32_t swapped = low_bits;
        low_bits = high_bits;
        high_bits = swapped;
    }
    return value;
}

uint64_t permutation_at(const permutation *order, uint64_t position)
{
    /* Cycle walking: what lands outside goes through the network again. It comes back inside at the latest where its
     * cycle closes, after fewer than two turns on average where there are more than 32 samples. */
    uint64_t value = network(order, position);
    while (value >= order->count)
        value = network(order, value);
    return value;
}
