#include "data/npy.h"

#include "base/checked.h"
#include "base/half.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are read as they lie in the file");

enum {
    LONGEST_HEADER = 1 << 16, /* NumPy needs under 200 bytes for plain arrays */
    SHOWN = 24,               /* letters of a strange word in a message */
};

static const struct {
    const char *code, *name;
    size_t size;
    bool integer;
} types[] = {
    [NPY_FLOAT32] = {"<f4", "float32", 4, false}, [NPY_FLOAT64] = {"<f8", "float64", 8, false},
    [NPY_INT32] = {"<i4", "int32", 4, true},      [NPY_INT64] = {"<i8", "int64", 8, true},
    [NPY_UINT8] = {"|u1", "uint8", 1, true},      [NPY_FLOAT16] = {"<f2", "float16", 2, false},
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

size_t npy_type_size(npy_type type)
{
    return types[type].size;
}

const char *npy_type_name(npy_type type)
{
    return types[type].name;
}

bool npy_type_is_integer(npy_type type)
{
    return types[type].integer;
}

/* ---- the header, which is a Python dictionary such as
 *      {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }  ---- */

typedef struct parser {
    const data_file *file;
    const char *at; /* in a text that ends with NUL */
} parser;

static remat_status bad(const parser *p, const char *text)
{
    remat_place place = data_file_place(p->file);
    return remat_fail(p->file->context, REMAT_BAD_INPUT, &place, "header of the .npy file: %s", text);
}

static void skip_space(parser *p)
{
    p->at += strspn(p->at, " \t\n\r");
}

static bool take(parser *p, char wanted)
{
    skip_space(p);
    if (*p->at != wanted)
        return false;
    p->at++;
    return true;
}

/* A word in quotes, without escapes: *word points into the text. */
static remat_status take_word(parser *p, const char **word, size_t *length)
{
    skip_space(p);
    char quote = *p->at;
    const char *end = quote == '\'' || quote == '"' ? strchr(p->at + 1, quote) : NULL;
    if (!end)
        return bad(p, "a word in quotes is missing");
    *word = p->at + 1;
    *length = (size_t)(end - *word);
    p->at = end + 1;
    return REMAT_OK;
}

static bool is(const char *word, size_t length, const char *wanted)
{
    return length == strlen(wanted) && memcmp(word, wanted, length) == 0;
}

static remat_status take_type(parser *p, npy_header *header)
{
    skip_space(p);
    if (*p->at == '[')
        return bad(p, "records cannot be read; save one array of float16, float32, float64, int32, int64 or uint8");
    const char *word;
    size_t length;
    REMAT_TRY(take_word(p, &word, &length));
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        /* A byte has no order: NumPy writes "|u1", others "<u1". */
        if (is(word, length, types[i].code) || (i == NPY_UINT8 && is(word, length, "<u1"))) {
            header->type = (npy_type)i;
            return REMAT_OK;
        }
    }
    remat_place place = data_file_place(p->file);
    return remat_fail(p->file->context, REMAT_BAD_INPUT, &place,
                      "values of type '%.*s' cannot be read; it must be little-endian float16 (<f2), float32 (<f4), "
                      "float64 (<f8), int32 (<i4), int64 (<i8) or uint8 (|u1)",
                      (int)(length < SHOWN ? length : SHOWN), word);
}

static remat_status take_order(parser *p)
{
    skip_space(p);
    if (strncmp(p->at, "True", 4) == 0)
        return bad(p, "the array is in Fortran order; save numpy.ascontiguousarray(...) of it");
    if (strncmp(p->at, "False", 5) != 0)
        return bad(p, "fortran_order must be True or False");
    p->at += 5;
    return REMAT_OK;
}

static remat_status take_dimension(parser *p, npy_header *header)
{
    uint64_t value = 0;
    if (*p->at < '0' || *p->at > '9')
        return bad(p, "shape must hold whole numbers");
    for (; *p->at >= '0' && *p->at <= '9'; p->at++)
        if (!remat_multiply(value, 10, &value) || !remat_add(&value, (uint64_t)(*p->at - '0')))
            return bad(p, "a dimension of 2^63 or more");
    if (*p->at == 'L') /* of Python 2 */
        p->at++;
    if (header->rank == NPY_MAX_RANK)
        return bad(p, "more than 32 dimensions");
    header->dims[header->rank++] = value;
    return REMAT_OK;
}

static remat_status take_shape(parser *p, npy_header *header)
{
    if (!take(p, '('))
        return bad(p, "shape must be in parentheses");
    while (!take(p, ')')) {
        REMAT_TRY(take_dimension(p, header));
        skip_space(p);
        if (!take(p, ',') && *p->at != ')')
            return bad(p, "',' or ')' is missing in the shape");
        skip_space(p);
    }
    return REMAT_OK;
}

static remat_status take_entries(parser *p, npy_header *header)
{
    unsigned seen = 0;
    if (!take(p, '{'))
        return bad(p, "it must start with '{'");
    while (!take(p, '}')) {
        const char *key;
        size_t length;
        REMAT_TRY(take_word(p, &key, &length));
        if (!take(p, ':'))
            return bad(p, "':' is missing behind a key");
        unsigned field = is(key, length, "descr")           ? 1
                         : is(key, length, "fortran_order") ? 2
                         : is(key, length, "shape")         ? 4
                                                            : 0;
        if (field == 0 || seen & field)
            return bad(p, "it must have descr, fortran_order and shape, each once, and nothing else");
        seen |= field;
        REMAT_TRY(field == 1 ? take_type(p, header) : field == 2 ? take_order(p) : take_shape(p, header));
        skip_space(p);
        if (!take(p, ',') && *p->at != '}')
            return bad(p, "',' or '}' is missing");
    }
    skip_space(p);
    if (*p->at)
        return bad(p, "something stands behind its '}'");
    return seen == 7 ? REMAT_OK : bad(p, "descr, fortran_order or shape is missing");
}

/* ---- the file around it ---- */

static remat_status check_size(const data_file *file, npy_header *header)
{
    remat_place place = data_file_place(file);
    uint64_t bytes;
    header->values = 1;
    bool fits = true;
    for (uint32_t i = 0; i < header->rank; i++)
        fits = fits && remat_multiply(header->values, header->dims[i], &header->values);
    fits = fits && remat_multiply(header->values, npy_type_size(header->type), &bytes);
    if (!fits)
        return remat_fail(file->context, REMAT_BAD_INPUT, &place, "the shape has 2^63 bytes or more");
    if (bytes == file->bytes - header->data_offset)
        return REMAT_OK;
    return remat_fail(file->context, REMAT_BAD_INPUT, &place,
                      "the shape needs %llu bytes of values, the file has %llu; it is damaged or not complete",
                      (unsigned long long)bytes, (unsigned long long)(file->bytes - header->data_offset));
}

remat_status npy_read_header(const data_file *file, npy_header *header)
{
    *header = (npy_header){0};
    remat_place place = data_file_place(file);
    unsigned char start[12] = {0};
    REMAT_TRY(data_file_read(file, 0, start, file->bytes < sizeof start ? file->bytes : sizeof start));
    if (memcmp(start, "\x93NUMPY", 6) != 0)
        return remat_fail(file->context, REMAT_BAD_INPUT, &place, "not a .npy file: it does not start with \\x93NUMPY");
    if (start[6] < 1 || start[6] > 3)
        return remat_fail(file->context, REMAT_BAD_INPUT, &place, "version %u of .npy is unknown; it must be 1, 2 or 3",
                          start[6]);
    /* The length of the header has two bytes in version 1 and four later. */
    uint64_t length = (uint64_t)start[8] | (uint64_t)start[9] << 8, from = 10;
    if (start[6] > 1) {
        length |= (uint64_t)start[10] << 16 | (uint64_t)start[11] << 24;
        from = 12;
    }
    char text[LONGEST_HEADER + 1];
    if (length > LONGEST_HEADER)
        return remat_fail(file->context, REMAT_BAD_INPUT, &place, "a header of %llu bytes; no array needs over %d",
                          (unsigned long long)length, LONGEST_HEADER);
    if (from + length > file->bytes)
        return remat_fail(file->context, REMAT_BAD_INPUT, &place, "the file ends inside its header");
    REMAT_TRY(data_file_read(file, from, text, length));
    text[length] = '\0';
    parser p = {file, text};
    if (strlen(text) != length)
        return bad(&p, "NUL byte");
    REMAT_TRY(take_entries(&p, header));
    header->data_offset = from + length;
    return check_size(file, header);
}

/* ---- values ---- */

#define EACH(c_type, expression)                                             \
    for (size_t i = 0; i < count; i++) {                                     \
        c_type value;                                                        \
        memcpy(&value, (const char *)from + i * sizeof value, sizeof value); \
        to[i] = expression;                                                  \
    }                                                                        \
    break

static float half_to_float(uint16_t value)
{
    float number;
    half_kernels_list(0)->unpack_fp16(&value, &number, 1);
    return number;
}

void npy_to_float(npy_type type, const void *from, size_t count, float *to)
{
    switch (type) {
    case NPY_FLOAT32: EACH(float, (float)value);
    case NPY_FLOAT64: EACH(double, (float)value);
    case NPY_INT32: EACH(int32_t, (float)value);
    case NPY_INT64: EACH(int64_t, (float)value);
    case NPY_UINT8: EACH(uint8_t, (float)value);
    case NPY_FLOAT16: EACH(uint16_t, half_to_float(value));
    }
}

static int32_t clamp(double value)
{
    return value >= INT32_MAX ? INT32_MAX : value > INT32_MIN ? (int32_t)value : INT32_MIN;
}

void npy_to_int32(npy_type type, const void *from, size_t count, int32_t *to)
{
    switch (type) {
    case NPY_FLOAT32: EACH(float, clamp((double)value));
    case NPY_FLOAT64: EACH(double, clamp(value));
    case NPY_INT32: EACH(int32_t, value);
    case NPY_INT64: EACH(int64_t, clamp((double)value));
    case NPY_UINT8: EACH(uint8_t, value);
    case NPY_FLOAT16: EACH(uint16_t, clamp((double)half_to_float(value)));
    }
}
