#include "backend/backend.h"

void backend_close(backend *owner)
{
    if (owner)
        owner->type->close(owner);
}

remat_status backend_allocate(backend *owner, memory_kind kind, uint64_t bytes, bool zeroed, backend_memory *memory)
{
    *memory = (backend_memory){.kind = kind};
    return bytes ? owner->type->allocate(owner, kind, bytes, zeroed, memory) : REMAT_OK;
}

void backend_release(backend *owner, backend_memory *memory)
{
    if (memory->at)
        owner->type->release(owner, memory);
    *memory = (backend_memory){0};
}

backend_kernel backend_find_kernel(const backend *owner, operation op, const char *types)
{
    return owner->type->find_kernel(owner, op, types);
}

uint64_t backend_workspace(const backend *owner, operation op, const void *args)
{
    return owner->type->workspace(owner, op, args);
}

remat_status backend_measure_limits(backend *owner, backend_limits *limits)
{
    return owner->type->measure_limits(owner, limits);
}

void backend_look_for_algorithms(backend *owner, bool looks)
{
    if (owner->type->look_for_algorithms)
        owner->type->look_for_algorithms(owner, looks);
}

remat_status backend_algorithms(backend *owner, char **text)
{
    *text = NULL;
    return owner->type->algorithms ? owner->type->algorithms(owner, text) : REMAT_OK;
}

remat_status backend_use_algorithms(backend *owner, const char *text)
{
    return owner->type->use_algorithms ? owner->type->use_algorithms(owner, text) : REMAT_OK;
}

remat_status backend_queue_create(backend *owner, backend_queue **made)
{
    return owner->type->queue_create(owner, made);
}

void backend_queue_destroy(backend_queue *queue)
{
    if (queue)
        queue->owner->type->queue_destroy(queue);
}

remat_status backend_run(backend_queue *queue, const recording *calls, size_t first, size_t end)
{
    return queue->owner->type->run(queue, calls, first, end);
}

remat_status backend_copy_in(backend_queue *queue, void *to, const void *host, uint64_t bytes)
{
    return bytes ? queue->owner->type->copy_in(queue, to, host, bytes) : REMAT_OK;
}

remat_status backend_copy_out(backend_queue *queue, void *host, const void *from, uint64_t bytes)
{
    return bytes ? queue->owner->type->copy_out(queue, host, from, bytes) : REMAT_OK;
}

remat_status backend_copy_within(backend_queue *queue, void *to, const void *from, uint64_t bytes)
{
    return bytes ? queue->owner->type->copy_within(queue, to, from, bytes) : REMAT_OK;
}

remat_status backend_wait(backend_queue *queue)
{
    return queue->owner->type->wait(queue);
}

remat_status backend_event_create(backend *owner, backend_event **made)
{
    return owner->type->event_create(owner, made);
}

void backend_event_destroy(backend *owner, backend_event *event)
{
    if (event)
        owner->type->event_destroy(owner, event);
}

remat_status backend_event_record(backend_queue *queue, backend_event *event)
{
    return queue->owner->type->event_record(queue, event);
}

remat_status backend_event_wait(backend *owner, backend_event *event, uint64_t *nanoseconds)
{
    return owner->type->event_wait(owner, event, nanoseconds);
}
