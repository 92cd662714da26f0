"""Checks that libraries run on systems of 2017: what they need of glibc and libstdc++.

``symbol_versions.py LIBRARY...`` prints the newest versions that each library needs. If one needs
more than those systems have, it prints that with the symbols, and the exit code is 1. It asks
objdump, which comes with g++; the environment variable OBJDUMP names another one, for libraries of
another machine.
"""

import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict

PLATFORM = (2, 24)
"""The glibc of the platform that the libraries are for."""

NAME = "manylinux_{}_{}".format(*PLATFORM)

MOST = {"CXXABI": (1, 3, 10), "GCC": (4, 8, 0), "GLIBC": PLATFORM, "GLIBCXX": (3, 4, 22)}
"""The newest version of each kind that all systems of this platform have."""

BEFORE_2_34 = ("libdl.so.2", "libpthread.so.0")
"""Where glibc before 2.34 has what later ones have in libc.so.6."""

HINT = "use what older systems have, or define it by that in link/old_symbols.c"


def dump(library):
    """What objdump says of a library: headers, versions and dynamic symbols."""
    command = [os.environ.get("OBJDUMP") or "objdump", "-p", "-T", str(library)]
    environment = dict(os.environ, LC_ALL="C")
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return done.stdout


def needed(dumped):
    """The versions that a library needs.

    Args:
      dumped: What `dump` returned.

    Returns:
      A dict from versions, as `"GLIBC_2.14"`, to sorted lists of the symbols that need them. A list
      may be empty: linkers ask for some versions because of a file's format.
    """
    symbols = defaultdict(set)
    references = dumped.partition("Version References:")[2].partition("DYNAMIC SYMBOL TABLE:")[0]
    for version in re.findall(r"^ +0x\w+ 0x\w+ \d+ (\S+)$", references, re.MULTILINE):
        symbols[version] = set()
    undefined = r"\*UND\*\s+\w+ +\((\S+)\) +(\S+)$"
    for version, symbol in re.findall(undefined, dumped, re.MULTILINE):
        symbols[version].add(symbol)
    return {version: sorted(symbols[version]) for version in sorted(symbols)}


def complaints(dumped):
    """What keeps a library from older systems, a line each; `dumped` is what `dump` returned."""
    versions = needed(dumped)
    if not versions:
        return ["it needs no version of any library: is it stripped of its dynamic symbols?"]
    found = [
        f"{NAME} lacks {version}: {', '.join(symbols) or 'the linker asks for it'}"
        for version, symbols in versions.items()
        if _is_lacking(version)
    ]
    named = re.findall(r"^ +NEEDED +(\S+)$", dumped, re.MULTILINE)
    return found + [f"it does not name {name}" for name in BEFORE_2_34 if name not in named]


def _is_lacking(version):
    kind, _, numbers = version.partition("_")
    # Others are private to one glibc, or names of features.
    known = kind in MOST and re.match(r"[\d.]+$", numbers)
    return not known or _numbers(numbers) > MOST[kind]


def _numbers(text):
    return tuple(int(number) for number in text.split("."))


def newest(dumped):
    """The newest version of each kind that a library needs; `dumped` is what `dump` returned."""
    latest = {}
    for version in needed(dumped):
        kind, _, numbers = version.partition("_")
        if re.match(r"[\d.]+$", numbers):
            latest[kind] = max(latest.get(kind, ()), _numbers(numbers))
    return [f"{kind}_{'.'.join(map(str, latest[kind]))}" for kind in sorted(latest)]


def check(libraries):
    """Prints the newest versions that each library needs; ends the program if any is too new."""
    found = []
    for library in libraries:
        dumped = dump(library)
        print(f"{library}: {', '.join(newest(dumped))}", flush=True)
        found += [f"{library}: {complaint}" for complaint in complaints(dumped)]
    if found:
        sys.exit("\n".join([*found, HINT]))


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=check.__doc__)
    parser.add_argument("libraries", nargs="+", metavar="LIBRARY")
    check(parser.parse_args().libraries)


if __name__ == "__main__":
    main()
