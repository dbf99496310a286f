#include "support/lifetime_rows.h"

enum { MOST_SLOW_ROWS = 16, MOST_PAIRED_ROWS = 2000 };

size_t rows_random(remat_lifetime *rows, test_random *random, size_t most, uint64_t horizon, uint64_t largest)
{
    size_t count = 1 + (size_t)test_random_below(random, most);
    for (size_t i = 0; i < count; i++) {
        uint64_t lower = test_random_below(random, horizon);
        rows[i].lower = lower;
        rows[i].upper = lower + 1 + test_random_below(random, horizon - lower);
        rows[i].size = test_random_below(random, largest);
        rows[i].offset = 77;
    }
    return count;
}

void rows_full(remat_lifetime *rows, test_random *random, size_t most, uint64_t load)
{
    size_t count = 0;
    uint64_t room = load, now = 0;
    for (;; now++) {
        while (room > 0 && count < most) {
            uint64_t size = 1 + test_random_below(random, room < 4 ? room : 4);
            rows[count++] = (remat_lifetime){now, UINT64_MAX, size, 77};
            room -= size;
        }
        if (count == most)
            break;
        for (size_t i = 0; i < count; i++)
            if (rows[i].upper == UINT64_MAX && test_random_below(random, 3) == 0) {
                rows[i].upper = now + 1;
                room += rows[i].size;
            }
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i].upper == UINT64_MAX)
            rows[i].upper = now + 1;
}

static bool cut_in_two(remat_lifetime *piece, remat_lifetime *rest, test_random *random)
{
    bool in_time = test_random_below(random, 2) == 0;
    uint64_t extent = in_time ? piece->upper - piece->lower : piece->size;
    if (extent < 2)
        return false;
    uint64_t first = 1 + test_random_below(random, extent - 1);
    *rest = *piece;
    if (in_time) {
        rest->lower = piece->lower + first;
        piece->upper = rest->lower;
    } else {
        rest->size = extent - first;
        piece->size = first;
    }
    return true;
}

void rows_cut(remat_lifetime *rows, test_random *random, size_t pieces, uint64_t side)
{
    rows[0] = (remat_lifetime){0, side, side, 77};
    for (size_t count = 1; count < pieces;)
        count += cut_in_two(&rows[test_random_below(random, count)], &rows[count], random);
}

static bool overlap(const remat_lifetime *a, const remat_lifetime *b)
{
    return a->size && b->size && a->lower < b->upper && b->lower < a->upper && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

/* Whether the last of `count` rows shares bytes with one before it. */
static bool last_collides(const remat_lifetime *rows, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++)
        if (overlap(&rows[i], &rows[count - 1]))
            return true;
    return false;
}

bool rows_collide(const remat_lifetime *rows, size_t count)
{
    for (size_t i = 1; i <= count; i++)
        if (last_collides(rows, i))
            return true;
    return false;
}

uint64_t rows_load(const remat_lifetime *rows, size_t count, uint64_t alignment)
{
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) { /* the load is largest at a moment where something begins */
        uint64_t load = 0;
        for (size_t j = 0; j < count; j++)
            if (rows[j].lower <= rows[i].lower && rows[i].lower < rows[j].upper)
                load += (rows[j].size + alignment - 1) / alignment * alignment;
        most = load > most ? load : most;
    }
    return most;
}

static bool fits(remat_lifetime *rows, size_t count, size_t at, uint64_t capacity)
{
    if (at == count)
        return true;
    rows[at].offset = 0;
    for (; rows[at].offset + rows[at].size <= capacity; rows[at].offset++)
        if (!last_collides(rows, at + 1) && fits(rows, count, at + 1, capacity))
            return true;
    return false;
}

uint64_t rows_optimum(const remat_lifetime *rows, size_t count, uint64_t from)
{
    remat_lifetime copy[MOST_SLOW_ROWS];
    assert_true(count <= MOST_SLOW_ROWS);
    memcpy(copy, rows, count * sizeof *rows);
    while (!fits(copy, count, 0, from))
        from++;
    return from;
}

remat_status rows_place(fixture *f, remat_lifetime *rows, size_t count, row_options options, remat_arena_result *result)
{
    remat_arena_options wanted;
    remat_arena_options_init(&wanted);
    wanted.alignment = options.alignment;
    wanted.capacity = options.capacity;
    wanted.effort = options.effort;
    remat_status status = remat_arena_place(f->context, rows, count, &wanted, result);
    if (status != REMAT_OK && status != REMAT_INFEASIBLE)
        return status;
    assert_true(result->lower_bound <= result->height);
    assert_int_equal(status, options.capacity && result->height > options.capacity ? REMAT_INFEASIBLE : REMAT_OK);
    expect_ok(f, remat_arena_check(f->context, rows, count, options.alignment, result->height));
    if (count <= MOST_PAIRED_ROWS)
        assert_false(rows_collide(rows, count));
    return status;
}
