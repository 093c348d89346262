"""Page-locked memory through the CUDA runtime's cudaHostAlloc, by ctypes: no toolkit is needed, only libcudart.

To be used in a child process alone: the runtime does not survive a fork, and its context costs host memory.
"""

import ctypes
import ctypes.util
import mmap
import os
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["CudaError", "pinned_allocator"]

_NAMES = ("libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0")
_TOOLKITS = Path("/usr/local")
_IN_TOOLKITS = ("cuda*/lib64", "cuda*/lib", "cuda*/targets/*/lib")
_PORTABLE = 1  # cudaHostAllocPortable: pinned for all contexts, as pools take it


class CudaError(Exception):
    """Why no page-locked memory can be had here."""


def pinned_allocator() -> Callable[[int], str]:
    """A function that takes a size in bytes for good, every page written, and says why not. Raises CudaError."""
    library = _load()
    count = ctypes.c_int(0)
    _check(library, "cudaGetDeviceCount", library.cudaGetDeviceCount(ctypes.byref(count)))
    if count.value < 1:
        msg = "cudaGetDeviceCount: no CUDA device"
        raise CudaError(msg)
    _check(library, "cudaFree(0)", library.cudaFree(ctypes.c_void_p(0)))  # makes the context, which is not the pool's

    def take(size: int) -> str:
        where = ctypes.c_void_p(0)
        code = library.cudaHostAlloc(ctypes.byref(where), ctypes.c_size_t(size), ctypes.c_uint(_PORTABLE))
        if code or not where.value:
            return f"cudaHostAlloc: {_reason(library, code)}"
        pages = memoryview((ctypes.c_char * size).from_address(where.value)).cast("B")
        pages[:: mmap.PAGESIZE] = b"\1" * len(range(0, size, mmap.PAGESIZE))
        return ""

    return take


def _load() -> ctypes.CDLL:
    """The library as the loader finds it (LD_LIBRARY_PATH, whatever its version; ld.so.cache), then where toolkits put it."""
    tried: list[str] = []
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
            _ = library.cudaGetDeviceCount, library.cudaFree, library.cudaHostAlloc, library.cudaGetErrorString
        except (OSError, AttributeError) as error:
            tried.append(str(error))
            continue
        library.cudaGetErrorString.restype = ctypes.c_char_p
        return library
    why = next((text for text in tried if "No such file" not in text and "cannot open" not in text), "")
    msg = (
        f"the CUDA runtime library (libcudart) cannot be loaded: {why}"
        if why
        else "no CUDA runtime library (libcudart)"
    )
    raise CudaError(msg)


def _candidates() -> Iterator[str]:
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        yield from _in(Path(folder)) if folder else ()
    yield from _NAMES
    if found := ctypes.util.find_library("cudart"):
        yield found
    for pattern in _IN_TOOLKITS:
        for folder in _TOOLKITS.glob(pattern):
            yield from _in(folder)


def _in(folder: Path) -> list[str]:
    return sorted((str(file) for file in folder.glob("libcudart.so*")), reverse=True)


def _check(library: ctypes.CDLL, call: str, code: int) -> None:
    if code:
        msg = f"{call}: {_reason(library, code)}"
        raise CudaError(msg)


def _reason(library: ctypes.CDLL, code: int) -> str:
    text: bytes | None = library.cudaGetErrorString(ctypes.c_int(code))
    return f"{(text or b'unknown error').decode(errors='replace')} (error {code})"
