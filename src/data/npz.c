#include "data/npz.h"

#include "base/alloc.h"
#include "data/npz_inflate.h"

#include <string.h>

/* Sizes and signatures of ZIP's records. */
enum {
    LOCAL_BYTES = 30,
    ENTRY_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    LONGEST_COMMENT = 65535
};
#define LOCAL_MARK   UINT32_C(0x04034b50)
#define ENTRY_MARK   UINT32_C(0x02014b50)
#define END_MARK     UINT32_C(0x06054b50)
#define END64_MARK   UINT32_C(0x06064b50)
#define LOCATOR_MARK UINT32_C(0x07064b50)

/* A member, as the directory at the end of the archive has it. */
typedef struct zip_entry {
    uint16_t flags, method, name_length, extra_length, comment_length;
    uint32_t checksum;
    uint64_t packed, bytes, local; /* the last: where its own header is */
    char name[NPZ_LONGEST_NAME + 1];
} zip_entry;

typedef struct zip_directory {
    uint64_t offset, bytes;
} zip_directory;

static uint16_t get16(const unsigned char *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get32(const unsigned char *at)
{
    return get16(at) | (uint32_t)get16(at + 2) << 16;
}

static uint64_t get64(const unsigned char *at)
{
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

static remat_status bad(const data_file *file, const char *text)
{
    remat_place place = data_file_place(file);
    return remat_fail(file->context, REMAT_BAD_INPUT, &place, "the archive is damaged or not complete: %s", text);
}

remat_status npz_is_archive(const data_file *file, bool *is_archive)
{
    unsigned char start[4] = {0};
    *is_archive = false;
    if (file->bytes < END_BYTES)
        return REMAT_OK;
    REMAT_TRY(data_file_read(file, 0, start, sizeof start));
    *is_archive = get32(start) == LOCAL_MARK || get32(start) == END_MARK;
    return REMAT_OK;
}

/* ---- the directory ---- */

/* Archives of 4 GiB and more have a larger record at the end, which a third one points to. */
static remat_status read_end64(const data_file *file, uint64_t end, zip_directory *directory)
{
    unsigned char record[END64_BYTES];
    if (end < LOCATOR_BYTES)
        return bad(file, "its end is not there");
    REMAT_TRY(data_file_read(file, end - LOCATOR_BYTES, record, LOCATOR_BYTES));
    if (get32(record) != LOCATOR_MARK)
        return bad(file, "its end is not there");
    uint64_t at = get64(record + 8);
    if (at > file->bytes || file->bytes - at < END64_BYTES)
        return bad(file, "its end lies outside");
    REMAT_TRY(data_file_read(file, at, record, END64_BYTES));
    if (get32(record) != END64_MARK)
        return bad(file, "its end is not there");
    *directory = (zip_directory){get64(record + 48), get64(record + 40)};
    return REMAT_OK;
}

/* The record at the end may have a comment behind it, so it is looked for from the end. */
static remat_status find_directory(const data_file *file, zip_directory *directory)
{
    unsigned char record[END_BYTES];
    uint64_t most = file->bytes - END_BYTES < LONGEST_COMMENT ? file->bytes - END_BYTES : LONGEST_COMMENT;
    for (uint64_t back = 0; back <= most; back++) {
        uint64_t at = file->bytes - END_BYTES - back;
        REMAT_TRY(data_file_read(file, at, record, 4));
        if (get32(record) != END_MARK)
            continue;
        REMAT_TRY(data_file_read(file, at, record, END_BYTES));
        *directory = (zip_directory){get32(record + 16), get32(record + 12)};
        if (directory->offset == UINT32_MAX || directory->bytes == UINT32_MAX)
            REMAT_TRY(read_end64(file, at, directory));
        if (directory->offset > file->bytes || directory->bytes > file->bytes - directory->offset)
            return bad(file, "its directory lies outside");
        return REMAT_OK;
    }
    return bad(file, "its directory is not there");
}

/* Sizes that have no room in the entry stand behind it. */
static remat_status read_large_sizes(const data_file *file, uint64_t at, zip_entry *entry)
{
    uint64_t *const wanted[] = {&entry->bytes, &entry->packed, &entry->local};
    for (uint64_t end = at + entry->extra_length; end - at >= 4;) {
        unsigned char field[4 + 24];
        REMAT_TRY(data_file_read(file, at, field, 4));
        uint16_t kind = get16(field), length = get16(field + 2);
        if (length > end - at - 4)
            break;
        if (kind == 1) {
            size_t used = 0, there = length < 24 ? length : 24;
            REMAT_TRY(data_file_read(file, at + 4, field + 4, there));
            for (size_t i = 0; i < 3; i++)
                if (*wanted[i] == UINT32_MAX && used + 8 <= there) {
                    *wanted[i] = get64(field + 4 + used);
                    used += 8;
                }
        }
        at += 4 + (uint64_t)length;
    }
    return REMAT_OK;
}

/* The entry at *at, which moves behind it. */
static remat_status read_entry(const data_file *file, uint64_t *at, uint64_t end, zip_entry *entry)
{
    unsigned char record[ENTRY_BYTES];
    if (end - *at < ENTRY_BYTES)
        return bad(file, "its directory ends inside an entry");
    REMAT_TRY(data_file_read(file, *at, record, ENTRY_BYTES));
    if (get32(record) != ENTRY_MARK)
        return bad(file, "its directory has something else than entries");
    *entry = (zip_entry){.flags = get16(record + 8),
                         .method = get16(record + 10),
                         .checksum = get32(record + 16),
                         .packed = get32(record + 20),
                         .bytes = get32(record + 24),
                         .name_length = get16(record + 28),
                         .extra_length = get16(record + 30),
                         .comment_length = get16(record + 32),
                         .local = get32(record + 42)};
    uint64_t length = ENTRY_BYTES + (uint64_t)entry->name_length + entry->extra_length + entry->comment_length;
    if (length > end - *at)
        return bad(file, "its directory ends inside an entry");
    size_t kept = entry->name_length < NPZ_LONGEST_NAME ? entry->name_length : NPZ_LONGEST_NAME;
    REMAT_TRY(data_file_read(file, *at + ENTRY_BYTES, entry->name, kept));
    REMAT_TRY(read_large_sizes(file, *at + ENTRY_BYTES + entry->name_length, entry));
    *at += length;
    size_t name = strlen(entry->name);
    if (name > 4 && strcmp(entry->name + name - 4, ".npy") == 0)
        entry->name[name - 4] = '\0';
    return REMAT_OK;
}

static remat_status fail_missing(const data_file *file, const char *const *names, const char *list)
{
    remat_place place = data_file_place(file);
    char wanted[200] = "";
    size_t used = 0;
    for (size_t i = 0; names[i] && used < sizeof wanted; i++)
        used += (size_t)snprintf(wanted + used, sizeof wanted - used, "%s%.40s", i ? ", " : "", names[i]);
    return remat_fail(file->context, REMAT_BAD_INPUT, &place,
                      "there is no array called %s; there are %s; FILE.npz:NAME names one", wanted,
                      *list ? list : "none");
}

/* The first of `names` that is there. */
static remat_status find_entry(const data_file *file, const char *const *names, zip_entry *found)
{
    zip_directory directory = {0};
    char list[400] = "";
    size_t used = 0, best = SIZE_MAX;
    REMAT_TRY(find_directory(file, &directory));
    for (uint64_t at = directory.offset, end = at + directory.bytes; at < end;) {
        zip_entry entry;
        REMAT_TRY(read_entry(file, &at, end, &entry));
        for (size_t i = 0; names[i] && i < best; i++)
            if (strcmp(names[i], entry.name) == 0) {
                best = i;
                *found = entry;
            }
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.40s", used ? ", " : "", entry.name);
    }
    return best == SIZE_MAX ? fail_missing(file, names, list) : REMAT_OK;
}

/* ---- a member ---- */

/* Where the bytes of a member begin: behind its own header. */
static remat_status find_bytes(const data_file *file, const zip_entry *entry, uint64_t *at)
{
    unsigned char local[LOCAL_BYTES];
    if (entry->flags & 1)
        return bad(file, "its members are encrypted");
    if (entry->local > file->bytes || file->bytes - entry->local < LOCAL_BYTES)
        return bad(file, "a member lies outside");
    REMAT_TRY(data_file_read(file, entry->local, local, LOCAL_BYTES));
    *at = entry->local + LOCAL_BYTES + get16(local + 26) + get16(local + 28);
    if (get32(local) != LOCAL_MARK || *at > file->bytes || entry->packed > file->bytes - *at)
        return bad(file, "a member lies outside");
    return REMAT_OK;
}

remat_status npz_each(const data_file *file, npz_visit visit, void *user)
{
    zip_directory directory = {0};
    REMAT_TRY(find_directory(file, &directory));
    for (uint64_t at = directory.offset, end = at + directory.bytes; at < end;) {
        zip_entry entry;
        uint64_t bytes_at = 0;
        REMAT_TRY(read_entry(file, &at, end, &entry));
        REMAT_TRY(find_bytes(file, &entry, &bytes_at));
        REMAT_TRY(visit(user, entry.name, bytes_at, entry.bytes, entry.method == 0 && entry.packed == entry.bytes));
    }
    return REMAT_OK;
}

remat_status npz_enter(data_file *file, const char *const *names, char member[NPZ_LONGEST_NAME + 1])
{
    zip_entry entry = {0};
    uint64_t at = 0;
    REMAT_TRY(find_entry(file, names, &entry));
    memcpy(member, entry.name, sizeof entry.name);
    REMAT_TRY(find_bytes(file, &entry, &at));
    if (entry.method == 0 && entry.packed == entry.bytes)
        return data_file_narrow(file, at, entry.bytes);
    if (entry.method != 8)
        return bad(file, "a member is neither stored nor deflated");
    return npz_inflate(file, at, entry.packed, entry.bytes, entry.checksum);
}
