"""Whether a shared object is whole.

The dynamic linker maps a file without looking at its length. Where a copy was interrupted, what is
missing ends the process with SIGBUS.
"""

import struct
from pathlib import Path

_HEADER = struct.Struct("<4sB11xHHIQQQIHHHHHH")
"""`Elf64_Ehdr`: magic number and class of `e_ident`, then all other fields."""
_SEGMENT = struct.Struct("<IIQQQQQQ")
"""`Elf64_Phdr`."""
_MAGIC, _CLASS_64 = b"\x7fELF", 2


def length(library: Path) -> int:
    """The least length that a file must have for its headers to be true; 0 if it has none.

    Args:
      library: The file.
    """
    with library.open("rb") as file:
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size or head[:4] != _MAGIC or head[4] != _CLASS_64:
            return 0
        fields = _HEADER.unpack(head)
        segments, sections = fields[6:8]
        segment_size, segment_count, section_size, section_count = fields[10:14]
        ends = [sections + section_size * section_count, segments + segment_size * segment_count]
        file.seek(segments)
        for _ in range(segment_count):
            entry = file.read(segment_size)
            if len(entry) < _SEGMENT.size:
                break
            _, _, offset, _, _, size_in_file, _, _ = _SEGMENT.unpack_from(entry)
            ends.append(offset + size_in_file)
    return max(ends)
