#include "train/gradient_chain.h"

#include <time.h>

#include "base/alloc.h"
#include "base/error.h"

enum { DEFAULT_LINK_BYTES = 4 << 20 };

/* What travels as one: some gradients that follow each other in memory, a part of a large one, or a statistic. */
typedef struct chain_link {
    char *at;
    uint64_t bytes;
    remat_dtype dtype;
    uint32_t uses; /* actions of a run that change it */
    uint32_t left; /* of these, in this run */
    bool sums;     /* with `fast`: the library adds it */
    bool waits;    /* its receive is to be started */
    comm_request receive, send;
    uint64_t began; /* when the sending began */
} chain_link;

/* An action that changes links first .. end - 1. */
typedef struct chain_event {
    size_t position;
    uint32_t first, end;
} chain_event;

/* Where the links of a parameter are; none: first == end. */
typedef struct link_range {
    uint32_t first, end;
} link_range;

struct gradient_chain {
    remat_context *context;
    chain_options options;
    chain_link *links;
    size_t link_count, link_capacity;
    chain_event *events; /* in the order of their positions */
    size_t event_count, event_capacity;
    size_t next;         /* the first event that is not over, while a micro-batch runs */
    size_t last_sent;    /* the link whose sending began last */
    bool receives, sums; /* in this micro-batch */
};

static uint64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- making: links ---- */

static remat_status add_link(gradient_chain *chain, chain_link link)
{
    REMAT_TRY(remat_grow(chain->context, (void **)&chain->links, &chain->link_capacity, chain->link_count + 1,
                         sizeof *chain->links));
    chain->links[chain->link_count++] = link;
    return REMAT_OK;
}

/* Parameters that are larger than a link are cut. Small ones that follow each other share one; statistics between them
 * have no gradient, but all ranks have the same bytes in their place. */
static remat_status link_gradient(gradient_chain *chain, uint32_t parameter, bool *open, link_range *range)
{
    const network_parameter *about = &chain->options.program->network->parameters[parameter];
    const remat_dtype dtype = layer_gradient_dtype(&about->about);
    const uint64_t most = chain->options.link_bytes, bytes = dtype_bytes(dtype, about->values);
    chain_link *last = *open ? &chain->links[chain->link_count - 1] : NULL;
    const uint64_t *offsets = chain->options.gradient_offsets;
    char *at = chain->options.gradients + (offsets ? offsets[parameter] : about->gradient_offset);
    if (last && last->dtype == dtype && (uint64_t)(at + bytes - last->at) <= most) {
        last->bytes = (uint64_t)(at + bytes - last->at);
        *range = (link_range){(uint32_t)chain->link_count - 1, (uint32_t)chain->link_count};
        return REMAT_OK;
    }
    range->first = (uint32_t)chain->link_count;
    for (uint64_t done = 0; done < bytes; done += most)
        REMAT_TRY(add_link(chain, (chain_link){.at = at + done,
                                               .bytes = bytes - done < most ? bytes - done : most,
                                               .dtype = dtype,
                                               .sums = chain->options.fast}));
    range->end = (uint32_t)chain->link_count;
    *open = range->end - range->first == 1;
    return REMAT_OK;
}

static remat_status link_parameters(gradient_chain *chain, link_range *ranges)
{
    const remat_program *program = chain->options.program;
    const remat_network *network = program->network;
    bool open = false; /* the last link may take more */
    for (uint32_t p = 0; p < network->parameter_count; p++)
        if (program->gradients[p] != GRAPH_NONE && program->applied[p] != NETWORK_NONE &&
            !chain->options.statistics_only)
            REMAT_TRY(link_gradient(chain, p, &open, &ranges[p]));
        else if (chain->options.fast)
            open = false; /* what is in its place must not be summed */
    for (uint32_t p = 0; p < network->parameter_count; p++) {
        const network_parameter *about = &network->parameters[p];
        if (!about->about.statistic || about->about.frozen || chain->options.gradients_only ||
            (chain->options.has && !chain->options.has(chain->options.user, p)))
            continue;
        const uint64_t offset = chain->options.weight_offsets ? chain->options.weight_offsets[p] : about->offset;
        ranges[p].first = (uint32_t)chain->link_count;
        REMAT_TRY(add_link(chain, (chain_link){.at = chain->options.weights + offset, .bytes = about->bytes}));
        ranges[p].end = (uint32_t)chain->link_count;
    }
    return REMAT_OK;
}

/* ---- making: events ---- */

static remat_status add_event(gradient_chain *chain, size_t position, link_range range)
{
    if (range.first == range.end)
        return REMAT_OK;
    REMAT_TRY(remat_grow(chain->context, (void **)&chain->events, &chain->event_capacity, chain->event_count + 1,
                         sizeof *chain->events));
    chain->events[chain->event_count++] = (chain_event){position, range.first, range.end};
    for (uint32_t i = range.first; i < range.end; i++)
        chain->links[i].uses++;
    return REMAT_OK;
}

/* Forwards change statistics, but not when they run again. */
static remat_status add_events(gradient_chain *chain, size_t position, uint32_t action, const link_range *ranges,
                               bool *ran)
{
    const remat_program *program = chain->options.program;
    const program_binding binding = program_binding_of(program, action);
    const network_layer *layer = &program->network->layers[binding.layer];
    const bool first_run = !ran[action];
    ran[action] = true;
    for (uint32_t i = 0; i < layer->node.parameter_count; i++) {
        const uint32_t parameter = layer->parameters[i];
        const bool is_statistic = program->network->parameters[parameter].about.statistic;
        const bool changes = (binding.kind == ACTION_FORWARD && first_run && is_statistic) ||
                             (binding.kind == ACTION_APPLY && binding.gradients[i] != GRAPH_NONE);
        if (changes)
            REMAT_TRY(add_event(chain, position, ranges[parameter]));
    }
    return REMAT_OK;
}

static remat_status fill(gradient_chain *chain, link_range *ranges, bool *ran)
{
    const graph_sequence *sequence = chain->options.sequence;
    REMAT_TRY(link_parameters(chain, ranges));
    for (size_t position = 0; position < sequence->count; position++)
        REMAT_TRY(add_events(chain, position, sequence->actions[position], ranges, ran));
    return REMAT_OK;
}

remat_status gradient_chain_create(remat_context *context, const chain_options *options, gradient_chain **made)
{
    const size_t parameters = options->program->network->parameter_count;
    const size_t actions = options->program->graph->action_count;
    gradient_chain *chain = remat_alloc_zeroed(context, 1, sizeof *chain);
    link_range *ranges = remat_alloc_zeroed(context, parameters, sizeof *ranges);
    bool *ran = remat_alloc_zeroed(context, actions, sizeof *ran);
    remat_status status = REMAT_NO_MEMORY;
    if (chain)
        chain->context = context; /* destroying it needs that */
    if (chain && ranges && ran) {
        chain->options = *options;
        if (!chain->options.link_bytes)
            chain->options.link_bytes = DEFAULT_LINK_BYTES;
        if (!chain->options.group.size) {
            chain->options.group.stride = 1;
            chain->options.group.size = options->ranks->size;
            chain->options.group.place = options->ranks->rank;
        }
        status = fill(chain, ranges, ran);
    }
    remat_release(context, ranges, parameters, sizeof *ranges);
    remat_release(context, ran, actions, sizeof *ran);
    if (status != REMAT_OK) {
        gradient_chain_destroy(chain);
        return status;
    }
    *made = chain;
    return REMAT_OK;
}

void gradient_chain_destroy(gradient_chain *chain)
{
    if (!chain)
        return;
    remat_release(chain->context, chain->links, chain->link_capacity, sizeof *chain->links);
    remat_release(chain->context, chain->events, chain->event_capacity, sizeof *chain->events);
    remat_release(chain->context, chain, 1, sizeof *chain);
}

/* ---- transfers ---- */

static uint64_t place_after(const gradient_chain *chain)
{
    return (chain->options.group.place + 1) % chain->options.group.size;
}

static uint64_t rank_of(const gradient_chain *chain, uint64_t place)
{
    return chain->options.group.first + place * chain->options.group.stride;
}

static uint64_t rank_before(const gradient_chain *chain)
{
    const uint64_t size = chain->options.group.size;
    return rank_of(chain, (chain->options.group.place + size - 1) % size);
}

static uint64_t rank_after(const gradient_chain *chain)
{
    return rank_of(chain, place_after(chain));
}

static remat_status start_receiving(gradient_chain *chain, size_t number)
{
    chain_link *link = &chain->links[number];
    return comm_start(chain->options.ranks,
                      &(comm_transfer){.kind = COMM_RECEIVE,
                                       .peer = rank_before(chain),
                                       .tag = chain->options.first_tag + (int)number,
                                       .data = link->at,
                                       .bytes = link->bytes},
                      &link->receive);
}

static remat_status start_sending(gradient_chain *chain, size_t number, bool sums)
{
    chain_link *link = &chain->links[number];
    link->began = nanoseconds_now();
    chain->last_sent = number;
    return comm_start(chain->options.ranks,
                      &(comm_transfer){.kind = sums ? COMM_SUM : COMM_SEND,
                                       .peer = sums ? 0 : rank_after(chain),
                                       .tag = chain->options.first_tag + (int)number,
                                       .data = link->at,
                                       .bytes = link->bytes,
                                       .dtype = link->dtype},
                      &link->send);
}

static void note_sent(const gradient_chain *chain, size_t number)
{
    const chain_link *link = &chain->links[number];
    if (chain->options.observe)
        chain->options.observe(chain->options.user, link->sums ? "sum" : "send", number, link->bytes, link->began,
                               nanoseconds_now());
}

static remat_status wait_sent(gradient_chain *chain, size_t number)
{
    chain_link *link = &chain->links[number];
    if (!link->send.is_active)
        return REMAT_OK;
    REMAT_TRY(comm_wait(chain->options.ranks, &link->send));
    note_sent(chain, number);
    return REMAT_OK;
}

static remat_status wait_received(gradient_chain *chain, size_t number)
{
    chain_link *link = &chain->links[number];
    if (!link->receive.is_active)
        return REMAT_OK;
    const uint64_t began = chain->options.observe ? nanoseconds_now() : 0;
    REMAT_TRY(comm_wait(chain->options.ranks, &link->receive));
    if (chain->options.observe)
        chain->options.observe(chain->options.user, "receive", number, link->bytes, began, nanoseconds_now());
    return REMAT_OK;
}

/* MPI moves data only while it is called. One test moves all transfers along; whoever observes wants the end of each. */
static remat_status move_along(gradient_chain *chain)
{
    bool done = true;
    const size_t first = chain->options.observe ? 0 : chain->last_sent;
    const size_t end = chain->options.observe ? chain->link_count : chain->last_sent + 1;
    for (size_t i = first; i < end && i < chain->link_count; i++)
        if (chain->links[i].send.is_active) {
            REMAT_TRY(comm_test(chain->options.ranks, &chain->links[i].send, &done));
            if (done)
                note_sent(chain, i);
        }
    if (done && chain->next < chain->event_count)
        REMAT_TRY(comm_test(chain->options.ranks, &chain->links[chain->events[chain->next].first].receive, &done));
    return REMAT_OK;
}

/* ---- a micro-batch ---- */

/* In the order in which they are needed: not all may get room at once. */
static remat_status start_receives(gradient_chain *chain)
{
    for (size_t e = 0; e < chain->event_count; e++)
        for (uint32_t i = chain->events[e].first; i < chain->events[e].end; i++)
            if (chain->links[i].waits) {
                chain->links[i].waits = false;
                REMAT_TRY(start_receiving(chain, i));
            }
    return REMAT_OK;
}

remat_status gradient_chain_begin(gradient_chain *chain, bool first, bool last_of_rank)
{
    const bool fast = chain->options.fast;
    chain->receives = !first;
    chain->sums = last_of_rank;
    chain->next = 0;
    for (size_t i = 0; i < chain->link_count; i++) {
        chain_link *link = &chain->links[i];
        REMAT_TRY(wait_sent(chain, i));
        link->left = link->uses;
        link->waits = chain->receives && link->uses && !(fast && link->sums);
    }
    return start_receives(chain);
}

remat_status gradient_chain_before(void *user, size_t position)
{
    gradient_chain *chain = user;
    for (size_t e = chain->next; e < chain->event_count && chain->events[e].position == position; e++)
        for (uint32_t i = chain->events[e].first; i < chain->events[e].end; i++)
            REMAT_TRY(wait_received(chain, i));
    return REMAT_OK;
}

remat_status gradient_chain_after(void *user, size_t position)
{
    gradient_chain *chain = user;
    for (; chain->next < chain->event_count && chain->events[chain->next].position == position; chain->next++)
        for (uint32_t i = chain->events[chain->next].first; i < chain->events[chain->next].end; i++) {
            chain_link *link = &chain->links[i];
            if (--link->left > 0 || (link->sums && !chain->sums))
                continue;
            REMAT_TRY(comm_follow(chain->options.ranks, chain->options.queue));
            REMAT_TRY(start_sending(chain, i, link->sums));
        }
    return move_along(chain);
}

/* ---- the end of a step ---- */

/* From the last rank to the first, and on to the one before the last. The last layers come first: their gradients are
 * complete first. */
static remat_status pass_on(gradient_chain *chain)
{
    const bool passes = place_after(chain) != chain->options.group.size - 1;
    for (size_t i = chain->link_count; i-- > 0;)
        if (chain->links[i].uses && !chain->links[i].sums) {
            REMAT_TRY(wait_sent(chain, i));
            REMAT_TRY(start_receiving(chain, i));
        }
    for (size_t i = chain->link_count; i-- > 0;)
        if (chain->links[i].uses && !chain->links[i].sums) {
            REMAT_TRY(wait_received(chain, i));
            if (passes)
                REMAT_TRY(start_sending(chain, i, false));
        }
    return REMAT_OK;
}

remat_status gradient_chain_finish(gradient_chain *chain)
{
    if (chain->options.group.place != chain->options.group.size - 1)
        REMAT_TRY(pass_on(chain));
    for (size_t i = 0; i < chain->link_count; i++)
        REMAT_TRY(wait_sent(chain, i));
    return REMAT_OK;
}
