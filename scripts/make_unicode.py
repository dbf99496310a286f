#!/usr/bin/python3
"""Writes src/data/tokenizer/unicode_tables.c from Unicode's own files: make_unicode.py FOLDER

FOLDER has UnicodeData.txt, CompositionExclusions.txt and DerivedAge.txt of Unicode 16.0, such as /usr/share/unicode of
Debian's package unicode-data 16.0.0. The versions are those that the library `tokenizers` uses: categories of Unicode 16 in
its regular expressions, and normalization of Unicode 9. Characters that are younger than that are left alone by its NFC.
"""
import os
import sys

CATEGORIES = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split()
NORMALIZATION_AGE = (9, 0)
OUTPUT = os.path.join(os.path.dirname(__file__), "../src/data/tokenizer/unicode_tables.c")


def rows(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line:
                yield [field.strip() for field in line.split(";")]


def span(text):
    first, _, last = text.partition("..")
    return range(int(first, 16), int(last or first, 16) + 1)


def runs(values, end):
    """(start, value) wherever the value changes."""
    found = []
    for code in range(end):
        value = values.get(code, 0)
        if not found or found[-1][1] != value:
            found.append((code, value))
    return found


def numbers(items):
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > 119:
            lines.append(line)
            line = "   "
        line += " " + item + ","
    return "\n".join(lines + [line])


def main():
    folder = sys.argv[1]
    age = {}
    for codes, version in rows(folder, "DerivedAge.txt"):
        for code in span(codes):
            age[code] = tuple(int(part) for part in version.split("."))
    category, combining, decomposition = {}, {}, {}
    first = 0
    for fields in rows(folder, "UnicodeData.txt"):
        code = int(fields[0], 16)
        if fields[1].endswith(", First>"):
            first = code
            continue
        codes = range(first, code + 1) if fields[1].endswith(", Last>") else [code]
        for each in codes:
            category[each] = CATEGORIES.index(fields[2])
        if age[code] > NORMALIZATION_AGE:
            continue
        if fields[3] != "0":
            combining[code] = int(fields[3])
        if fields[5] and not fields[5].startswith("<"):
            decomposition[code] = [int(part, 16) for part in fields[5].split()]
    excluded = {int(fields[0], 16) for fields in rows(folder, "CompositionExclusions.txt")}
    excluded |= {code for code, parts in decomposition.items()
                 if len(parts) == 1 or combining.get(code) or combining.get(parts[0])}
    # Characters that a normalized text may not have, or that may change what is before them.
    seconds = {parts[1] for code, parts in decomposition.items() if code not in excluded}
    unsafe = {code: 1 for code in set(combining) | (excluded & set(decomposition)) | seconds}
    for code in list(range(0x1161, 0x1176)) + list(range(0x11a8, 0x11c3)):
        unsafe[code] = 1

    decompositions = sorted(decomposition.items())
    compositions = sorted((parts[0], parts[1], i) for i, (code, parts) in enumerate(decompositions) if code not in excluded)
    with open(OUTPUT, "w", encoding="utf-8") as out:
        out.write("/* Made by scripts/make_unicode.py from the files of Unicode 16.0; do not edit. */\n"
                  '#include "data/tokenizer/unicode.h"\n\n/* clang-format off */\n')

        def table(declaration, items):
            out.write("%s[] = {\n%s\n};\n" % (declaration, numbers(items)))

        kinds = runs(category, 0x110000)
        table("const uint32_t unicode_category_runs", ["0x%x" % (code << 8 | value) for code, value in kinds])
        out.write("const size_t unicode_category_run_count = %d;\n" % len(kinds))
        classes = runs(combining, 0x110000)
        table("const uint32_t unicode_combining_runs", ["0x%x" % (code << 8 | value) for code, value in classes])
        out.write("const size_t unicode_combining_run_count = %d;\n" % len(classes))
        changes = runs(unsafe, 0x110000)
        table("const uint32_t unicode_unsafe_runs", ["0x%x" % (code << 8 | value) for code, value in changes])
        out.write("const size_t unicode_unsafe_run_count = %d;\n" % len(changes))
        table("const unicode_decomposition unicode_decompositions",
              ["{0x%x, 0x%x, 0x%x}" % (code, parts[0], parts[1] if len(parts) > 1 else 0)
               for code, parts in decompositions])
        out.write("const size_t unicode_decomposition_count = %d;\n" % len(decompositions))
        table("const uint16_t unicode_compositions", ["%d" % i for _, _, i in compositions])
        out.write("const size_t unicode_composition_count = %d;\n" % len(compositions))
        out.write("/* clang-format on */\n")


main()
