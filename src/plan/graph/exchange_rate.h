/* Rates of exchange between bytes and cost, in integers: the same on every processor. */
#ifndef REMAT_PLAN_GRAPH_EXCHANGE_RATE_H
#define REMAT_PLAN_GRAPH_EXCHANGE_RATE_H

#include <stdint.h>

typedef unsigned __int128 wide_number;

/* So much cost for so many bytes. */
typedef struct exchange_rate {
    uint64_t cost, bytes; /* below 2^62, not both 0 */
} exchange_rate;

/* cost/bytes, as exactly as 62 bits allow. */
static inline exchange_rate exchange_rate_of(wide_number cost, wide_number bytes)
{
    while ((cost | bytes) >> 62) {
        cost >>= 1;
        bytes >>= 1;
    }
    return (exchange_rate){(uint64_t)cost, (uint64_t)bytes};
}

/* What a cost and bytes, both below 2^64, come to together; good for comparing with others at the same rate. */
static inline wide_number exchange_price(exchange_rate rate, uint64_t cost, wide_number bytes)
{
    return (wide_number)cost * rate.bytes + bytes * rate.cost;
}

#endif
