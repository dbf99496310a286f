#!/usr/bin/env python3
"""Writes remat/_declarations.py from the public C headers, so that they are the only place where calls are declared.

    declare.py COMPILER INCLUDE_FOLDER OUTPUT

The C preprocessor resolves the headers; cffi parses the result and writes a Python module in its out-of-line ABI mode.
That module needs neither a compiler nor a parser when it is imported.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile

import cffi

# What the C headers take from the C library. cffi knows the types; the functions turn streams into texts and back.
C_LIBRARY = """
FILE *open_memstream(char **text, size_t *bytes);
FILE *fmemopen(void *text, size_t bytes, const char *mode);
int fclose(FILE *stream);
void free(void *memory);
"""
SYSTEM_HEADERS = ("stddef.h", "stdint.h", "stdio.h", "stdbool.h", "inttypes.h")
LIMITS = "#define UINT64_MAX 0xffffffffffffffff\n#define UINT32_MAX 0xffffffff\n#define INT64_MAX 0x7fffffffffffffff\n"


def preprocess(compiler: str, include: str, *options: str) -> str:
    """The headers as the preprocessor sees them. Empty files stand for the headers of the system."""
    with tempfile.TemporaryDirectory() as stand_ins:
        for name in SYSTEM_HEADERS:
            with open(os.path.join(stand_ins, name), "w", encoding="ascii") as file:
                file.write(LIMITS if name == "stdint.h" else "")
        command = [compiler, "-E", "-P", *options, "-nostdinc", "-I", stand_ins, "-I", include, "-xc", "-"]
        source = "#include <remat/remat.h>\n"
        return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def without_inline_functions(text: str) -> str:
    """Leaves out functions that are defined in the headers: bindings call the `_sized` functions behind them. cffi knows no
    attributes."""
    return re.sub(r"static inline [^;{]*\{[^{}]*\}|__attribute__\(\(\w+\)\)", "", text)


def constants(compiler: str, include: str) -> str:
    """The macros that are whole numbers, as cffi takes them: a name and a literal."""
    macros = dict(re.findall(r"^#define (\w+) (.+)$", preprocess(compiler, include, "-dM"), re.MULTILINE))
    lines = []
    for name in sorted(macros):
        if not name.startswith("REMAT_"):
            continue
        value = macros[name]
        while value in macros:
            value = macros[value]
        value = re.sub(r"\(uint64_t\)|[()]", "", value)
        value = macros.get(value, value)
        if re.fullmatch(r"\d+|0x[0-9a-fA-F]+", value):
            lines.append(f"#define {name} {int(value, 0)}")
    return "\n".join(lines) + "\n"


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    compiler, include, output = sys.argv[1:]
    ffi = cffi.FFI()
    ffi.set_source("remat._declarations", None)
    ffi.cdef(C_LIBRARY + without_inline_functions(preprocess(compiler, include)) + constants(compiler, include))
    with contextlib.redirect_stdout(sys.stderr if os.environ.get("V") else io.StringIO()):
        ffi.emit_python_code(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
