"""Finds and loads the shared library, and sees that it is the one that this package was made for."""

import os

try:
    from ._declarations import ffi
except ModuleNotFoundError as error:
    if error.name != "remat._declarations":
        raise ImportError(f"the package remat needs python3-cffi or `pip install cffi`: {error}") from error
    raise ImportError(
        "this is the source of the package remat. Build it with `cmake --build build --target remat_python` and set "
        "PYTHONPATH to build/python, or make a wheel with `make python` and install that"
    ) from error


def _path() -> str:
    """The library of the environment variable REMAT_SHARED_LIBRARY, else the one inside the package."""
    folder = os.path.dirname(os.path.abspath(__file__))
    # Not libremat.so: a file with this ending would be taken for a Python module.
    return os.environ.get("REMAT_SHARED_LIBRARY") or os.path.join(folder, "libremat.so.0")


def _load(path: str):
    try:
        library = ffi.dlopen(path)
    except OSError as error:
        raise ImportError(f"the shared library of remat cannot be loaded: {error}") from error
    made_for = f"{library.REMAT_VERSION_MAJOR}.{library.REMAT_VERSION_MINOR}.{library.REMAT_VERSION_PATCH}"
    try:
        found = ffi.string(library.remat_version()).decode()
    except (AttributeError, ffi.error) as error:
        raise ImportError(f"{path} is not the shared library of remat") from error
    if found != made_for:
        raise ImportError(
            f"{path} is release {found} of the shared library, and this Python package is release {made_for}. "
            "Install both from the same release"
        )
    return library, found


library_path = _path()
lib, version = _load(library_path)
libc = ffi.dlopen(None)
