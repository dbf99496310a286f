/* Files of torch.save: every code of a pickle, tensors as PyTorch writes them, and what is refused and why. */
#include "support/fixture.h"
#include "support/memory_failures.h"
#include "support/scratch_files.h"

#include "data/pickle.h"
#include "data/safetensors.h"

/* ---- archives ---- */

typedef struct archive {
    unsigned char bytes[4000], directory[1000];
    size_t used, listed;
    unsigned count;
} archive;

static void put(unsigned char *to, size_t *used, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[(*used)++] = (unsigned char)(i < 8 ? number >> 8 * i : 0);
}

static void add_member(archive *to, const char *name, const void *content, size_t length, unsigned method)
{
    const size_t at = to->used;
    put(to->bytes, &to->used, 0x04034b50, 4);
    put(to->bytes, &to->used, 0, 22);
    put(to->bytes, &to->used, strlen(name), 4);
    memcpy(to->bytes + to->used, name, strlen(name));
    to->used += strlen(name);
    memcpy(to->bytes + to->used, content, length);
    to->used += length;
    put(to->directory, &to->listed, 0x02014b50, 4);
    put(to->directory, &to->listed, 0, 6);
    put(to->directory, &to->listed, method, 10);
    put(to->directory, &to->listed, length, 4);
    put(to->directory, &to->listed, length, 4);
    put(to->directory, &to->listed, strlen(name), 14);
    put(to->directory, &to->listed, at, 4);
    memcpy(to->directory + to->listed, name, strlen(name));
    to->listed += strlen(name);
    to->count++;
}

static const char *write_archive(archive *from, const char *name)
{
    const size_t at = from->used;
    memcpy(from->bytes + from->used, from->directory, from->listed);
    from->used += from->listed;
    put(from->bytes, &from->used, 0x06054b50, 4);
    put(from->bytes, &from->used, 0, 4);
    put(from->bytes, &from->used, from->count | from->count << 16, 4);
    put(from->bytes, &from->used, from->listed, 4);
    put(from->bytes, &from->used, at, 6);
    return scratch_write(name, from->bytes, from->used);
}

static const float numbers[] = {1, 2, 3, 4};

/* An archive with this pickle and four numbers. */
static const char *write_pickle(const void *bytes, size_t length)
{
    archive made = {.used = 0};
    add_member(&made, "w/data.pkl", bytes, length, 0);
    add_member(&made, "w/data/0", numbers, sizeof numbers, 0);
    add_member(&made, "w/data/1", numbers, sizeof numbers, 8);
    return write_archive(&made, "made.pt");
}

/* ---- pickles ---- */

#define TEXT(letters, length) "X" length "\0\0\0" letters
#define STORAGE(class, key)   "(" TEXT("storage", "\7") "ctorch\n" class "\n" TEXT(key, "\1") TEXT("cpu", "\3") "K\4tQ"
#define TENSOR(storage, offset, sizes, strides)                                \
    "ctorch._utils\n_rebuild_tensor_v2\n(" storage offset sizes strides "\x89" \
    "ccollections\nOrderedDict\n)RtR"
#define SQUARE        TENSOR(STORAGE("FloatStorage", "0"), "K\0", "K\2K\2\x86", "K\2K\1\x86")
#define STATE(tensor) "\x80\2}" TEXT("a", "\1") tensor "s."
#define BYTES(text)   text, sizeof text - 1

static const struct {
    const char *bytes;
    size_t length;
    const char *message; /* NULL: it is fine */
} cases[] = {
    {BYTES(STATE(SQUARE)), NULL},
    /* All the ways to write the same: marks, memo, long texts, frames, numbers of each length. */
    {BYTES("\x80\4\x95\0\0\0\0\0\0\0\0}q\0(\x8c\1"
           "a" SQUARE "\x8d\1\0\0\0\0\0\0\0"
           "b" SQUARE "r\1\0\0\0U\1"
           "c"
           "h\1T\1\0\0\0"
           "dj\1\0\0\0\x94u."),
     NULL},
    {BYTES("}(K\1" SQUARE "M\1\1" SQUARE "J\xff\xff\xff\xff" SQUARE
           "\x8a\1\2N\x8a\0G\0\0\0\0\0\0\0\0\x8a\x9\1\2\3\4\5\6\7\x8\x9"
           "B\1"
           "\0\0\0xC\1y\x88]N\x85"
           "aN(NNe(K\1lNu."),
     NULL},
    {BYTES("}(\x8b\1\0\0\0\1]K\1aK\2(K\3K\4e(K\1K\2lu."), NULL},
    {BYTES("}K\1}K\2" SQUARE "ss."), NULL},
    {BYTES("}(" TEXT("epoch", "\5") "K\7" TEXT("model", "\5") "}" TEXT("a", "\1") SQUARE "su."), NULL},
    {BYTES("}(" TEXT("a", "\1") "ctorch._utils\n_rebuild_parameter\n(" SQUARE "\x88NtRu."), NULL},
    {BYTES("}(N" SQUARE TEXT("b", "\1") "cmodule\nClass\n)\x81}b" TEXT("c", "\1") "cmodule\nf\n)R" TEXT(
         "d", "\1") "NNR" TEXT("e", "\1") "NQ" TEXT("f", "\1") "K\1"
                                                               "0Nu."),
     NULL},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "K\4\x85", "K\1\x85"))), NULL},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\1", "K\3\x85", "K\1\x85"))), NULL},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", ")", ")"))), NULL},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "K\1K\2K\1\x87", "K\7K\1K\1\x87"))), NULL},
    /* Only reading the values is an error then. */
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "K\2K\2\x86", "K\1K\2\x86"))), NULL},
    {BYTES(STATE(TENSOR(STORAGE("ComplexStorage", "0"), "K\0", "K\2\x85", "K\1\x85"))), NULL},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "1"), "K\0", "K\2\x85", "K\1\x85"))), NULL},
    {BYTES("}."), NULL},
    /* What torch.save does not write. */
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\1", "K\4\x85", "K\1\x85"))),
     "a tensor is larger than its values in the archive"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\x11", "K\0\x85", "K\1\x85"))),
     "a tensor is larger than its values in the archive"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "\x8a\x8\0\0\0\0\0\0\0\x7f", "K\1\x85", "K\1\x85"))),
     "a tensor is larger than its values in the archive"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "\x8a\x8\0\0\0\0\0\0\0\x7f\x85", "K\1\x85"))),
     "a tensor is larger than its values in the archive"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "9"), "K\0", "K\2\x85", "K\1\x85"))),
     "the values of a tensor are not in the archive"},
    {BYTES(STATE(TENSOR("N", "K\0", "K\2\x85", "K\1\x85"))), "a tensor of the pickle is not as torch.save writes it"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "N", "K\2\x85", "K\1\x85"))), "not as torch.save writes it"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "J\xff\xff\xff\xff", "K\2\x85", "K\1\x85"))),
     "not as torch.save"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "N", "K\1\x85"))), "not as torch.save writes it"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "K\2\x85", "N"))), "not as torch.save writes it"},
    {BYTES(STATE(TENSOR("(NtQ", "K\0", "K\2\x85", "K\1\x85"))), "not as torch.save writes it"},
    {BYTES(STATE(TENSOR("(NNNtQ", "K\0", "K\2\x85", "K\1\x85"))), "not as torch.save writes it"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "N\x85", "K\1\x85"))), "not as torch.save writes it"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "J\xff\xff\xff\xff\x85", "K\1\x85"))),
     "not as torch.save"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "K\2\x85", ")"))), "not as torch.save writes it"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "K\2\x85", "N\x85"))), "not as torch.save writes it"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t", "K\1\x85"))),
     "not as torch.save"},
    {BYTES(STATE(TENSOR(STORAGE("FloatStorage", "0"), "K\0", "(J\0\0\0\x7fJ\0\0\0\x7fJ\0\0\0\x7ft", "(K\1K\1K\1t"))),
     "not as torch.save writes it"},
    {BYTES(STATE("ctorch._utils\n_rebuild_tensor_v2\n)R")), "not as torch.save writes it"},
    {BYTES("}" TEXT("\xff", "\1") SQUARE "s."), "the name of a tensor is too long, or is none"},
    {BYTES("}" TEXT("__metadata__", "\x0c") SQUARE "s."), "the name of a tensor is too long, or is none"},
    {BYTES("]."), "it holds an object, not a state dict; write one with torch.save(model.state_dict(), FILE)"},
    {BYTES("\x80\2}q\0" TEXT("a", "\1") "h\0s."), NULL}, /* a dictionary that holds itself */
    {BYTES("\x80\2}q\0(" TEXT("a", "\1") "h\0" TEXT("b", "\1") "h\0" TEXT("c", "\1") "h\0u."),
     "the pickle has too many values"},
    /* Damages. */
    {BYTES("."), "the pickle is damaged at byte 1: a value is missing"},
    {BYTES("(."), "a value is missing"},
    {BYTES("N"), "it ends too early"},
    {BYTES("X\4\0\0\0abc"), "it ends too early"},
    {BYTES("X\4"), "it ends too early"},
    {BYTES("ca\nb"), "it ends too early"},
    {BYTES("\x8a\x9\1"), "it ends too early"},
    {BYTES("\x8a\4\1"), "it ends too early"},
    {BYTES("\x8a"), "it ends too early"},
    {BYTES("J\1"), "it ends too early"},
    {BYTES("q"), "it ends too early"},
    {BYTES("h"), "it ends too early"},
    {BYTES("t."), "a mark is missing"},
    {BYTES("e."), "a mark is missing"},
    {BYTES("u."), "a mark is missing"},
    {BYTES("(N\x86."), "a value is missing"},
    {BYTES("\x85."), "a value is missing"},
    {BYTES("a."), "a value is missing"},
    {BYTES("Ns."), "a value is missing"},
    {BYTES("(Na."), "a value is missing"},
    {BYTES("}(Nu."), "a value is missing"},
    {BYTES("](e(a."), "a value is missing"},
    {BYTES("}((u."), "a value is missing"},
    {BYTES("}N(s."), "a value is missing"},
    {BYTES("(Ne."), "a value is missing"},
    {BYTES("R."), "a value is missing"},
    {BYTES("NR."), "a value is missing"},
    {BYTES("Q."), "a value is missing"},
    {BYTES("\x81."), "a value is missing"},
    {BYTES("N\x81."), "a value is missing"},
    {BYTES("b."), "a value is missing"},
    {BYTES("\x94."), "a value is missing"},
    {BYTES("(\x94."), "a value is missing"},
    {BYTES("Nq\1."), "a value has the wrong number"},
    {BYTES("h\0."), "a value is recalled that is not there"},
    {BYTES("I1\n."), "the code 0x49 is not one that torch.save writes"},
};
enum { CASES = sizeof cases / sizeof *cases };

static remat_status open_and_close(remat_context *context, const char *path)
{
    safetensors *file;
    remat_status status = safetensors_open(context, path, &file);
    safetensors_close(file);
    return status;
}

static void pickles_are_judged(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < CASES; i++) {
        remat_status status = open_and_close(f->context, write_pickle(cases[i].bytes, cases[i].length));
        if (status != (cases[i].message ? REMAT_BAD_INPUT : REMAT_OK))
            fail_msg("case %zu: status %d, %s", i, status, remat_context_message(f->context));
        if (cases[i].message)
            expect_message(f, cases[i].message);
    }
}

/* Whatever the bytes are, a pickle is read or refused. */
static void changed_bytes_are_judged(void **state)
{
    fixture *f = *state;
    static const unsigned char others[] = {0, 1, '(', '}', 't', 'R', 'Q', 'h', 0xff};
    const remat_place place = {"made.pt", REMAT_NOWHERE, REMAT_NOWHERE, REMAT_NOWHERE, NULL};
    for (size_t i = 0; i < CASES; i++)
        for (size_t at = 0; at < cases[i].length; at++)
            for (size_t o = 0; o < sizeof others; o++) {
                unsigned char bytes[600];
                pickle made;
                assert_true(cases[i].length < sizeof bytes);
                memcpy(bytes, cases[i].bytes, cases[i].length);
                bytes[at] = others[o];
                if (pickle_read(f->context, bytes, cases[i].length, &place, &made) != REMAT_OK)
                    expect_message(f, "made.pt: the pickle is damaged at byte ");
                pickle_release(&made);
            }
}

static void tensors_are_found_by_name(void **state)
{
    fixture *f = *state;
    safetensors *file;
    expect_ok(f, safetensors_open(f->context, write_pickle(cases[1].bytes, cases[1].length), &file));
    const char *const names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++) {
        const safetensors_tensor *tensor = safetensors_find(file, names[i]);
        assert_non_null(tensor);
        assert_int_equal(tensor->rank, 2);
        assert_int_equal(tensor->end - tensor->begin, sizeof numbers);
    }
    safetensors_close(file);
    expect_ok(f, safetensors_open(f->context, write_pickle(cases[4].bytes, cases[4].length), &file));
    assert_non_null(safetensors_find(file, "1.2"));
    safetensors_close(file);
}

static void other_archives_are_refused(void **state)
{
    fixture *f = *state;
    archive made = {.used = 0};
    add_member(&made, "data.pkl", "", 0, 0);
    add_member(&made, "w/other.pkl", "", 0, 0);
    expect_status(f, open_and_close(f->context, write_archive(&made, "other.pt")), REMAT_BAD_INPUT);
    expect_message(f, "other.pt: it is an archive, but none that torch.save writes: it has no data.pkl");
    made = (archive){.used = 0};
    add_member(&made, "w/data.pkl", "}.", 2, 8);
    expect_status(f, open_and_close(f->context, write_archive(&made, "packed.pt")), REMAT_BAD_INPUT);
    expect_message(f, "data.pkl of the archive is compressed or too large");
    expect_status(f, open_and_close(f->context, scratch_write("old.pt", "\x80\2\x8a\nl\xfc\x9c", 7)), REMAT_BAD_INPUT);
    expect_message(f, "the format of torch.save before PyTorch 1.6; load it there and save it again");
    expect_status(f, open_and_close(f->context, scratch_write("short.pt", "\x80", 1)), REMAT_BAD_INPUT);
}

static remat_status open_once(remat_context *context, void *user)
{
    return open_and_close(context, user);
}

static void failed_allocations_are_survived(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        char path[300];
        if (cases[i].message || cases[i].length < 3)
            continue;
        snprintf(path, sizeof path, "%s", write_pickle(cases[i].bytes, cases[i].length));
        expect_failures_without_reserve_survived("a file of torch.save", open_once, path, 5, 400);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(pickles_are_judged),
        FIXTURE_TEST(changed_bytes_are_judged),
        FIXTURE_TEST(tensors_are_found_by_name),
        FIXTURE_TEST(other_archives_are_refused),
        FIXTURE_TEST(failed_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
