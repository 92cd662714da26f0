"""The library needs no newer glibc and libstdc++ than the wheel's platform has."""

import os

import pytest

import blockcell
from helpers import programs

FOLDER = blockcell.find_library().parent
LIBRARY = FOLDER / "libblockcell.so"
FAILPOINTS = FOLDER.parent / "failpoints" / FOLDER.name / "libblockcell.so"
"""Built by `make test`."""


def check(library, environment=None):
    return programs.run("scripts/symbol_versions.py", library, environment=environment)


@pytest.mark.parametrize("library", [LIBRARY, FAILPOINTS], ids=["library", "failpoints"])
def test_versions(library):
    if not library.is_file():
        pytest.skip("make test builds build/failpoints")
    code, said = check(library)
    assert code == 0, said
    assert "GLIBC_2." in said and "GLIBCXX_3.4" in said


UNDEFINED = "      DF *UND*\t0000000000000000 (GLIBC_2.2.5) dlopen"
GOOD = f"""
Dynamic Section:
  NEEDED               libdl.so.2
  NEEDED               libpthread.so.0

Version References:
  required from libc.so.6:
    0x09691a75 0x00 02 GLIBC_2.2.5

DYNAMIC SYMBOL TABLE:
{UNDEFINED}
0000000000000000      DF *UND*\t0000000000000000  Base        TF_Version
"""


@pytest.mark.parametrize(
    "old, new, complaint",
    [
        (GOOD, GOOD, None),
        ("GLIBC_2.2.5", "GLIBC_2.24", None),
        ("GLIBC_2.2.5", "GLIBC_2.25", "lacks GLIBC_2.25: dlopen"),
        ("GLIBC_2.2.5", "GLIBCXX_3.4.23", "lacks GLIBCXX_3.4.23: dlopen"),
        ("GLIBC_2.2.5", "GLIBC_PRIVATE", "lacks GLIBC_PRIVATE: dlopen"),
        ("GLIBC_2.2.5", "LLVM_18", "lacks LLVM_18: dlopen"),
        # A weak reference: its version is a condition, too.
        (UNDEFINED, "  w   DF *UND*\t0 (GLIBC_2.30) gettid", "lacks GLIBC_2.30: gettid"),
        ("GLIBC_2.2.5\n", "GLIBC_ABI_DT_RELR\n", "lacks GLIBC_ABI_DT_RELR: the linker asks"),
        ("GLIBC_2.2.5", "", "it needs no version of any library"),
        ("libdl.so.2", "libm.so.6", "it does not name libdl.so.2"),
        ("libpthread.so.0", "libm.so.6", "it does not name libpthread.so.0"),
    ],
)
def test_what_is_too_new(tmp_path, old, new, complaint):
    assert old in GOOD
    (tmp_path / "dump").write_text(GOOD.replace(old, new))
    objdump = tmp_path / "objdump"
    objdump.write_text('#!/bin/sh\nexec cat "$(dirname "$0")/dump"\n')
    objdump.chmod(0o700)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    code, said = check("some.so", environment={"PATH": path})
    assert code == (0 if complaint is None else 1), said
    assert complaint is None or complaint in said
