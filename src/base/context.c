#include "base/alloc.h"
#include "base/attach.h"
#include "base/error.h"
#include "base/number_text.h"
#include "base/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <remat/units.h>

struct remat_context {
    remat_allocator allocator;
    uint64_t bytes, peak_bytes;
    remat_warning_fn warn;
    void *warn_user;
    bool quiet;
    bool takes_no_reserve;
    remat_error error;
    const void *attached_key;
    void *attached;
    void (*release_attached)(remat_context *context, void *object);
    char message[1024], file[512], field[64], layer_name[256];
};

/* From here on the C library asks the system for every piece anew. Asked for directly, it is known to be zero, and what
 * starts with zeros needs no second writing. Nobody asks for more alignment than a page has. */
enum { MAPPED_BYTES = 32 << 20 };

static void *libc_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    if (bytes >= MAPPED_BYTES) {
        void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return mapped == MAP_FAILED ? NULL : mapped;
    }
    if (alignment <= _Alignof(max_align_t))
        return malloc(bytes);
    void *memory = NULL;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void libc_release(void *user, void *memory, size_t bytes)
{
    (void)user;
    if (bytes >= MAPPED_BYTES)
        munmap(memory, bytes);
    else
        free(memory);
}

remat_status remat_context_create_sized(const remat_allocator *allocator, size_t allocator_size,
                                        remat_context **context)
{
    remat_allocator chosen = {libc_allocate, libc_release, NULL};
    *context = NULL;
    if (allocator && !remat_struct_take(&chosen, sizeof chosen, allocator, allocator_size))
        return REMAT_INVALID;
    remat_context *made = chosen.allocate(chosen.user, sizeof *made, _Alignof(max_align_t));
    if (!made)
        return REMAT_NO_MEMORY;
    memset(made, 0, sizeof *made);
    made->allocator = chosen;
    made->error = (remat_error){.status = REMAT_OK,
                                .message = made->message,
                                .file = made->file,
                                .line = REMAT_NOWHERE,
                                .layer = REMAT_NOWHERE,
                                .step = REMAT_NOWHERE,
                                .field = made->field,
                                .budget_bytes = REMAT_NOWHERE,
                                .needed_bytes = REMAT_NOWHERE,
                                .layer_name = made->layer_name};
    *context = made;
    return REMAT_OK;
}

void remat_context_destroy(remat_context *context)
{
    if (!context)
        return;
    if (context->attached)
        context->release_attached(context, context->attached);
    context->allocator.release(context->allocator.user, context, sizeof *context);
}

remat_status remat_context_attach(remat_context *context, const void *key, void *object,
                                  void (*release)(remat_context *context, void *object))
{
    if (context->attached && context->attached_key != key)
        return remat_fail(context, REMAT_INTERNAL, NULL, "something else is attached to the context");
    context->attached_key = key;
    context->attached = object;
    context->release_attached = release;
    return REMAT_OK;
}

void *remat_context_attached(const remat_context *context, const void *key)
{
    return context->attached_key == key ? context->attached : NULL;
}

const char *remat_context_message(const remat_context *context)
{
    return context->message;
}

const remat_error *remat_context_error(const remat_context *context)
{
    return &context->error;
}

void remat_context_on_warning(remat_context *context, remat_warning_fn warn, void *user)
{
    context->warn = warn;
    context->warn_user = user;
}

uint64_t remat_context_bytes(const remat_context *context)
{
    return context->bytes;
}

uint64_t remat_context_peak_bytes(const remat_context *context)
{
    return context->peak_bytes;
}

/* ---- failures ---- */

/* Prints at `used`, never past the end; returns the new end. */
__attribute__((format(printf, 4, 0))) static size_t append(char *text, size_t room, size_t used, const char *format,
                                                           va_list arguments)
{
    if (used >= room)
        return used;
    int wrote = text_print_list(text + used, room - used, format, arguments);
    size_t end = used + (wrote < 0 ? 0 : (size_t)wrote);
    return end < room ? end : room - 1;
}

__attribute__((format(printf, 4, 5))) static size_t append_words(char *text, size_t room, size_t used,
                                                                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t end = append(text, room, used, format, arguments);
    va_end(arguments);
    return end;
}

static size_t append_place(char *text, size_t room, const remat_place *where)
{
    size_t used = 0;
    text[0] = '\0';
    if (!where)
        return 0;
    if (where->file && where->line != REMAT_NOWHERE)
        used = append_words(text, room, used, "%s:%llu: ", where->file, (unsigned long long)where->line);
    else if (where->file)
        used = append_words(text, room, used, "%s: ", where->file);
    if (where->layer != REMAT_NOWHERE)
        used = append_words(text, room, used, "layer %llu: ", (unsigned long long)where->layer);
    if (where->step != REMAT_NOWHERE)
        used = append_words(text, room, used, "step %llu: ", (unsigned long long)where->step);
    if (where->field)
        used = append_words(text, room, used, "%s: ", where->field);
    return used;
}

static void copy_text(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from ? from : "");
}

remat_status remat_fail(remat_context *context, remat_status status, const remat_place *where, const char *format, ...)
{
    remat_place place = where ? *where : REMAT_PLACE_NOWHERE;
    char message[sizeof context->message];
    size_t used = append_place(message, sizeof message, where);
    va_list arguments;
    va_start(arguments, format);
    append(message, sizeof message, used, format, arguments);
    va_end(arguments);
    /* Composed apart and copied at the end: the arguments may point into the last message. Names come from files: what a
     * terminal would act on is escaped here, for all messages. */
    remat_text_escape(message, context->message, sizeof context->message);
    copy_text(context->file, sizeof context->file, place.file);
    copy_text(context->field, sizeof context->field, place.field);
    context->error.status = status;
    context->error.line = place.line;
    context->error.layer = place.layer;
    context->error.step = place.step;
    context->error.budget_bytes = context->error.needed_bytes = REMAT_NOWHERE;
    context->layer_name[0] = '\0';
    return status;
}

remat_status remat_fail_budget(remat_context *context, uint64_t budget_bytes, uint64_t needed_bytes,
                               const char *layer_name)
{
    context->error.budget_bytes = budget_bytes;
    context->error.needed_bytes = needed_bytes;
    copy_text(context->layer_name, sizeof context->layer_name, layer_name);
    return context->error.status;
}

remat_status remat_fail_add(remat_context *context, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(context->message, sizeof context->message, strlen(context->message), format, arguments);
    va_end(arguments);
    return context->error.status;
}

remat_status remat_fail_in_file(remat_context *context, const char *file, uint64_t line)
{
    remat_error before = context->error;
    remat_place place = REMAT_PLACE_NOWHERE;
    char field[sizeof context->field], layer_name[sizeof context->layer_name];
    memcpy(field, context->field, sizeof field);
    memcpy(layer_name, context->layer_name, sizeof layer_name);
    place.file = file;
    place.line = line;
    remat_fail(context, before.status, &place, "%s", context->message);
    memcpy(context->field, field, sizeof field);
    context->error.layer = before.layer;
    context->error.step = before.step;
    return remat_fail_budget(context, before.budget_bytes, before.needed_bytes, layer_name);
}

void remat_context_set_quiet(remat_context *context, bool quiet)
{
    context->quiet = quiet;
}

void remat_warn(remat_context *context, const remat_place *where, const char *format, ...)
{
    if (!context->warn || context->quiet)
        return;
    char message[sizeof context->message];
    size_t used = append_place(message, sizeof message, where);
    va_list arguments;
    va_start(arguments, format);
    append(message, sizeof message, used, format, arguments);
    va_end(arguments);
    char shown[sizeof message];
    remat_text_escape(message, shown, sizeof shown);
    context->warn(context->warn_user, shown);
}

/* ---- memory ---- */

void *remat_alloc_aligned(remat_context *context, size_t bytes, size_t alignment)
{
    bytes = bytes ? bytes : 1;
    void *memory = context->allocator.allocate(context->allocator.user, bytes, alignment);
    if (!memory) {
        remat_fail(context, REMAT_NO_MEMORY, NULL, "out of memory: %zu more bytes could not be had", bytes);
        return NULL;
    }
    context->bytes += bytes;
    if (context->bytes > context->peak_bytes)
        context->peak_bytes = context->bytes;
    return memory;
}

void *remat_alloc(remat_context *context, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count ? count : 1, size, &bytes)) {
        remat_fail(context, REMAT_NO_MEMORY, NULL, "out of memory: %zu items of %zu bytes cannot be had", count, size);
        return NULL;
    }
    return remat_alloc_aligned(context, bytes, _Alignof(max_align_t));
}

bool remat_alloc_comes_zeroed(const remat_context *context, size_t bytes)
{
    return context->allocator.allocate == libc_allocate && bytes >= MAPPED_BYTES;
}

void *remat_alloc_zeroed(remat_context *context, size_t count, size_t size)
{
    void *memory = remat_alloc(context, count, size);
    size_t bytes = (count ? count : 1) * size;
    if (memory && !remat_alloc_comes_zeroed(context, bytes))
        memset(memory, 0, bytes);
    return memory;
}

void remat_release(remat_context *context, void *memory, size_t count, size_t size)
{
    if (!memory)
        return;
    size_t bytes = (count ? count : 1) * size;
    bytes = bytes ? bytes : 1;
    context->bytes -= bytes;
    context->allocator.release(context->allocator.user, memory, bytes);
}

void remat_alloc_take_no_reserve(remat_context *context)
{
    context->takes_no_reserve = true;
}

bool remat_alloc_takes_reserve(const remat_context *context)
{
    return !context->takes_no_reserve;
}

remat_status remat_grow(remat_context *context, void **items, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity)
        return REMAT_OK;
    size_t wanted = *capacity < 8 ? 16 : *capacity * 2;
    if (wanted < needed || context->takes_no_reserve)
        wanted = needed;
    void *moved = remat_alloc(context, wanted, size);
    if (!moved)
        return REMAT_NO_MEMORY;
    if (*items)
        memcpy(moved, *items, *capacity * size);
    remat_release(context, *items, *capacity, size);
    *items = moved;
    *capacity = wanted;
    return REMAT_OK;
}

remat_status remat_fit(remat_context *context, void **items, size_t *capacity, size_t count, size_t size)
{
    void *fitting = NULL;
    if (count == *capacity)
        return REMAT_OK;
    if (count > 0) {
        fitting = remat_alloc(context, count, size);
        if (!fitting)
            return REMAT_NO_MEMORY;
        memcpy(fitting, *items, count * size);
    }
    remat_release(context, *items, *capacity, size);
    *items = fitting;
    *capacity = count;
    return REMAT_OK;
}

char *remat_text_copy(remat_context *context, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = remat_alloc(context, bytes, 1);
    if (copy)
        memcpy(copy, text, bytes);
    return copy;
}

void remat_text_release(remat_context *context, const char *text)
{
    if (text)
        remat_release(context, (void *)(uintptr_t)text, strlen(text) + 1, 1);
}
