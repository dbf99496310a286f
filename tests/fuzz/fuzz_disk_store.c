/* The file to which activations are spilled, on a disk that loses and changes bytes: what is read back is what was
 * written, or an error. Each pair of bytes is a call. */
#include "fuzz/fuzz.h"

#include "store/disk_store.h"

#include <errno.h>

enum { SLOTS = 4, SLOT_BYTES = 96, FILE_BYTES = 256 };

/* The file is memory. `damage` says what happens at the next call. */
typedef struct bad_disk {
    uint8_t bytes[FILE_BYTES];
    uint8_t damage[64]; /* by the number of the call; 0: none */
    unsigned calls;
} bad_disk;

static int open_disk(void *user, const char *directory)
{
    (void)user;
    (void)directory;
    return 3;
}

static int reserve(void *user, int file, uint64_t bytes)
{
    (void)user;
    (void)file;
    return bytes <= FILE_BYTES ? 0 : -1;
}

static int close_disk(void *user, int file)
{
    (void)user;
    (void)file;
    return 0;
}

/* How many of the bytes get through; -1 with errno. */
static ssize_t transfer(bad_disk *disk, size_t bytes, uint8_t *damage)
{
    *damage = disk->damage[disk->calls++ % sizeof disk->damage];
    errno = *damage % 8 == 1 ? EIO : EINTR;
    switch (*damage % 8) {
    case 1: return -1;
    case 2: return disk->calls % 2 ? -1 : (ssize_t)bytes; /* interrupted, and once more */
    case 3: return 0;
    case 4: return (ssize_t)(bytes + 1) / 2;
    default: return (ssize_t)bytes;
    }
}

static ssize_t write_disk(void *user, int file, const void *from, size_t bytes, uint64_t offset)
{
    bad_disk *disk = user;
    uint8_t damage;
    (void)file;
    ssize_t got = transfer(disk, bytes, &damage);
    FUZZ_CHECK(offset + bytes <= FILE_BYTES);
    if (got > 0 && damage % 8 != 5) /* 5: it says so and writes nothing */
        memcpy(disk->bytes + offset, from, (size_t)got);
    return got;
}

static ssize_t read_disk(void *user, int file, void *to, size_t bytes, uint64_t offset)
{
    bad_disk *disk = user;
    uint8_t damage;
    (void)file;
    ssize_t got = transfer(disk, bytes, &damage);
    FUZZ_CHECK(offset + bytes <= FILE_BYTES);
    if (got > 0)
        memcpy(to, disk->bytes + offset, (size_t)got);
    if (got > 0 && damage % 8 == 6)
        ((uint8_t *)to)[damage % (size_t)got] ^= damage;
    return got;
}

typedef struct session {
    disk_store *store;
    uint8_t put[SLOTS][SLOT_BYTES]; /* what the caller put last, which does not change until it is written */
    uint64_t sizes[SLOTS];          /* 0: nothing */
    uint8_t target[SLOTS][SLOT_BYTES];
} session;

static void get(session *s, size_t slot, uint64_t bytes)
{
    if (disk_store_get(s->store, slot, s->target[slot], bytes) == REMAT_OK)
        FUZZ_CHECK(bytes == s->sizes[slot] && memcmp(s->target[slot], s->put[slot], bytes) == 0);
}

static void call(session *s, uint8_t what, uint8_t value)
{
    size_t slot = what % SLOTS;
    uint64_t bytes = value % (SLOT_BYTES + 8); /* too many as well */
    switch (what / SLOTS % 8) {
    case 0:
    case 1:
        if (bytes > SLOT_BYTES) {
            FUZZ_CHECK(disk_store_put(s->store, slot, s->put[slot], bytes) != REMAT_OK);
            break;
        }
        disk_store_wait(s->store, slot);
        memset(s->put[slot], value + what, bytes);
        s->sizes[slot] = bytes;
        disk_store_put(s->store, slot, s->put[slot], bytes);
        break;
    case 2: disk_store_prefetch(s->store, slot, s->target[slot], s->sizes[slot]); break;
    case 3:
    case 4: get(s, slot, s->sizes[slot]); break;
    case 5: disk_store_wait(s->store, slot); break;
    case 6:
        disk_store_reset(s->store);
        memset(s->sizes, 0, sizeof s->sizes);
        break;
    case 7: disk_store_drain(s->store); break;
    }
}

void fuzz_disk_store(const uint8_t *data, size_t size)
{
    remat_context *context = fuzz_begin();
    static bad_disk disk;
    static session s;
    disk = (bad_disk){0};
    s = (session){0};
    for (size_t i = 0, count = fuzz_take(&data, &size); i < count && size; i++)
        disk.damage[i % sizeof disk.damage] = fuzz_take(&data, &size);
    static const disk_slot slots[SLOTS] = {{0, SLOT_BYTES}, {SLOT_BYTES, 64}, {160, SLOT_BYTES}, {64, SLOT_BYTES}};
    const disk_io io = {open_disk, reserve, write_disk, read_disk, close_disk, &disk};
    const disk_store_options options = {
        .directory = "/tmp", .slots = slots, .slot_count = SLOTS, .queue_length = 2, .io = &io};
    FUZZ_CHECK(disk_store_create(context, &options, &s.store) == REMAT_OK);
    for (unsigned calls = 0; size && calls < 64; calls++) {
        uint8_t what = fuzz_take(&data, &size);
        call(&s, what, fuzz_take(&data, &size));
    }
    disk_store_destroy(s.store);
    fuzz_end(context);
}
