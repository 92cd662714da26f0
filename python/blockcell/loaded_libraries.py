"""Which libraries the dynamic linker has loaded into this process, and under which names.

TensorFlow knows a library by the name under which it was asked to load it first. Under any other
name of the same file it finds nothing new, and lists no ops. The linker remembers the first name.
"""

import contextlib
import ctypes
import os
from pathlib import Path
from typing import Any, Dict, List, Tuple


class _Library(ctypes.Structure):
    """The beginning of C's `struct dl_phdr_info`."""

    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]


def names_of(library: Path) -> List[str]:
    """The names under which somebody may have asked for this file; none if it is not loaded.

    Args:
      library: The file.

    Returns:
      The linker's name for it: a path as it was given, perhaps relative to a former working
      directory. Then the last part of it: the linker searches its own folders for names without a
      slash, and keeps the path that it finds.
    """
    for name, path in _loaded():
        if _same_file(path, library):
            return list(dict.fromkeys([name, os.path.basename(name)]))
    return []


def others_like(library: Path) -> List[str]:
    """The paths of loaded files of this file's name that are not this file."""
    paths = [path for _, path in _loaded() if os.path.basename(path) == library.name]
    return [path for path in paths if not _same_file(path, library)]


def _loaded() -> List[Tuple[str, str]]:
    """The linker's name and the absolute path of every loaded library."""
    found, mapped = [], _mapped()

    def append(entry: Any, size: int, unused: None) -> int:
        library = entry.contents
        found.append((os.fsdecode(library.name or b""), mapped.get(library.address or 0, "")))
        return 0  # Go on.

    callback = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(_Library), ctypes.c_size_t, ctypes.c_void_p
    )
    ctypes.CDLL(None).dl_iterate_phdr(callback(append), None)
    return found


def _mapped() -> Dict[int, str]:
    """The absolute path of each file in memory, by the address where that begins."""
    with open("/proc/self/maps", errors="surrogateescape") as maps:
        lines = [line.rstrip("\n").split(None, 5) for line in maps]
    return {int(line[0].split("-")[0], 16): line[5] for line in lines if len(line) == 6}


def _same_file(path: str, library: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samefile(path, str(library))
    return False
