#include "plan/graph/max_flow.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/min_max.h"

#define NONE UINT32_MAX

remat_status flow_network_create(remat_context *context, uint32_t nodes, flow_network *n)
{
    *n = (flow_network){.context = context, .node_count = nodes};
    n->first = remat_alloc(context, nodes, sizeof *n->first);
    n->level = remat_alloc(context, nodes, sizeof *n->level);
    n->at = remat_alloc(context, nodes, sizeof *n->at);
    n->list = remat_alloc(context, nodes, sizeof *n->list);
    if (n->first && n->level && n->at && n->list) {
        flow_network_clear(n);
        return REMAT_OK;
    }
    flow_network_release(n);
    return REMAT_NO_MEMORY;
}

void flow_network_release(flow_network *n)
{
    if (!n->context)
        return;
    remat_release(n->context, n->first, n->node_count, sizeof *n->first);
    remat_release(n->context, n->level, n->node_count, sizeof *n->level);
    remat_release(n->context, n->at, n->node_count, sizeof *n->at);
    remat_release(n->context, n->list, n->node_count, sizeof *n->list);
    remat_release(n->context, n->edges, n->edge_capacity, sizeof *n->edges);
    *n = (flow_network){0};
}

void flow_network_clear(flow_network *n)
{
    memset(n->first, 0xff, n->node_count * sizeof *n->first); /* NONE */
    n->edge_count = 0;
}

remat_status flow_network_add(flow_network *n, uint32_t from, uint32_t to, uint64_t capacity)
{
    REMAT_TRY(remat_grow(n->context, (void **)&n->edges, &n->edge_capacity, n->edge_count + 2, sizeof *n->edges));
    n->edges[n->edge_count] = (flow_edge){to, n->first[from], capacity};
    n->first[from] = (uint32_t)n->edge_count++;
    n->edges[n->edge_count] = (flow_edge){from, n->first[to], 0};
    n->first[to] = (uint32_t)n->edge_count++;
    return REMAT_OK;
}

/* How many edges a node is from the source, along edges with something left. */
static bool find_levels(flow_network *n, uint32_t source, uint32_t sink)
{
    uint32_t begin = 0, end = 0;
    memset(n->level, 0xff, n->node_count * sizeof *n->level);
    n->level[source] = 0;
    n->list[end++] = source;
    while (begin < end) {
        uint32_t node = n->list[begin++];
        for (uint32_t e = n->first[node]; e != NONE; e = n->edges[e].next)
            if (n->edges[e].left && n->level[n->edges[e].to] == NONE) {
                n->level[n->edges[e].to] = n->level[node] + 1;
                n->list[end++] = n->edges[e].to;
            }
    }
    return n->level[sink] != NONE;
}

/* Sends what fits along the path of edges in n->list. Returns how many edges of it still have something left. */
static uint32_t send(flow_network *n, uint32_t length, uint64_t *sent)
{
    uint64_t amount = FLOW_UNLIMITED;
    uint32_t kept = length;
    for (uint32_t i = 0; i < length; i++)
        amount = remat_min(amount, n->edges[n->list[i]].left);
    for (uint32_t i = length; i-- > 0;) {
        n->edges[n->list[i]].left -= amount;
        n->edges[n->list[i] ^ 1].left += amount;
        kept = n->edges[n->list[i]].left ? kept : i;
    }
    *sent += amount;
    return kept;
}

/* Sends along all shortest paths, each one edge longer than the level of its node. */
static uint64_t send_all(flow_network *n, uint32_t source, uint32_t sink)
{
    uint64_t sent = 0;
    uint32_t node = source, length = 0;
    memcpy(n->at, n->first, n->node_count * sizeof *n->at);
    for (;;) {
        if (node == sink) {
            length = send(n, length, &sent);
            node = length ? n->edges[n->list[length - 1]].to : source;
        }
        uint32_t e = n->at[node];
        while (e != NONE && !(n->edges[e].left && n->level[n->edges[e].to] == n->level[node] + 1))
            e = n->edges[e].next;
        n->at[node] = e;
        if (e != NONE) {
            n->list[length++] = e;
            node = n->edges[e].to;
        } else if (node == source) {
            return sent;
        } else { /* nothing goes on from here */
            uint32_t back = n->list[--length];
            node = n->edges[back ^ 1].to;
            n->at[node] = n->edges[back].next;
        }
    }
}

uint64_t flow_network_solve(flow_network *n, uint32_t source, uint32_t sink)
{
    uint64_t flow = 0;
    while (find_levels(n, source, sink))
        flow += send_all(n, source, sink);
    return flow;
}

bool flow_network_on_source_side(const flow_network *n, uint32_t node)
{
    return n->level[node] != NONE; /* of the last search, which did not reach the sink */
}
