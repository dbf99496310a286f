#!/usr/bin/env python3
"""Which BLAS PyTorch multiplies matrices with, and whether it suits this processor.

Debian's PyTorch takes whatever libblas.so.3 is installed. The reference BLAS makes it 40 to 70 times slower, and an OpenBLAS
that does not know the processor computes with the instructions of an old one. A comparison with either is worth nothing.

    bench/torch_blas.py        exit code 0: it is fine, 3: it is crippled

The first line says what was found. With "OPENBLAS_CORETYPE=NAME" as the second line, that setting of the environment would
mend it. --libraries and --core replace what would be found, and --flags the processor's: for tests.
"""
import argparse
import ctypes
import os
import re
import sys

# Cores of OpenBLAS by the instructions that their kernels use. All others are older, or for other processors.
CORES = {
    "avx512f": ["SKYLAKEX", "COOPERLAKE", "SAPPHIRERAPIDS", "ZEN"],  # OpenBLAS has no kernels of its own for Zen 4
    "avx2": ["HASWELL", "ZEN", "EXCAVATOR", "SKYLAKEX", "COOPERLAKE", "SAPPHIRERAPIDS"],
}


def processor_flags():
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith(("flags", "Features")):
                return line.split(":", 1)[1].split()
    return []


def loaded_libraries():
    """Those that PyTorch has loaded after a product."""
    import torch

    torch.ones(300, 300) @ torch.ones(300, 300)
    with open("/proc/self/maps") as lines:
        paths = {line.split()[-1] for line in lines if line.split()[-1].startswith("/")}
    if torch.backends.mkl.is_available():
        paths.add("/libmkl_in_torch.so")
    return sorted(path for path in paths if re.search(r"blas|mkl|blis", os.path.basename(path)))


def openblas_core(path):
    library = ctypes.CDLL(path)
    library.openblas_get_corename.restype = ctypes.c_char_p
    return library.openblas_get_corename().decode()


def judge(libraries, core, flags):
    """(whether it is fine, what was found, the core type that would mend it or None)"""
    names = [os.path.basename(path) for path in libraries]
    if any("mkl" in name for name in names):
        return True, "MKL", None
    if any("blis" in name for name in names):
        return True, "BLIS", None
    openblas = [path for path in libraries if "openblas" in path]
    if not openblas:
        if not names:
            return False, "no BLAS that is known", None
        return False, "the reference BLAS (%s); apt install libopenblas0-pthread" % names[0], None
    best = "avx512f" if "avx512f" in flags else "avx2" if "avx2" in flags else None
    if best is None or core.upper() in CORES[best]:
        return True, "OpenBLAS for %s" % core, None
    return (
        False,
        "OpenBLAS, which takes this processor for a %s, though it has %s" % (core, best),
        "SKYLAKEX" if best == "avx512f" else "HASWELL",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="*")
    parser.add_argument("--core", default="")
    parser.add_argument("--flags", nargs="*")
    given = parser.parse_args()
    libraries = loaded_libraries() if given.libraries is None else given.libraries
    core = given.core
    for path in libraries:
        if not core and given.libraries is None and "openblas" in path:
            core = openblas_core(path)
    fine, found, mend = judge(libraries, core, processor_flags() if given.flags is None else given.flags)
    print(found)
    if mend:
        print("OPENBLAS_CORETYPE=" + mend)
    return 0 if fine else 3


if __name__ == "__main__":
    sys.exit(main())
