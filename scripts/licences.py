"""Writes THIRD_PARTY_LICENSES.txt: the notices of the crates that are linked into the library.

    python3 scripts/licences.py            writes
    python3 scripts/licences.py --check    ends with 1 if the file is another

Needs cargo, and the sources of the crates, which building the library downloads.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "THIRD_PARTY_LICENSES.txt"
HEAD = """\
libblockcell.so contains these Rust crates, each under the licence that stands with it. Where one
offers several, all its texts follow. The library also uses inline functions of the headers of
TensorFlow, which is installed beside it, with its own notices.
"""
_NAMES = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "license*")


def linked():
    """The packages that are linked in, as cargo describes them, by name and version."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    done = subprocess.run(command, cwd=str(ROOT), stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    waiting = [key for key, package in packages.items() if package["name"] == "blockcell"]
    seen = set(waiting)
    for key in waiting:  # Grows while it is read.
        for dependency in nodes[key]["deps"]:
            is_linked = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            other = dependency["pkg"]
            if is_linked and other not in seen and not _is_macro(packages[other]):
                seen.add(other)
                waiting.append(other)
    crates = [packages[key] for key in seen if packages[key]["source"]]
    return sorted(crates, key=lambda package: (package["name"], package["version"]))


def _is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def text():
    """What the file has to hold."""
    parts = [HEAD]
    for package in linked():
        folder = Path(package["manifest_path"]).parent
        files = sorted({file for name in _NAMES for file in folder.glob(name) if file.is_file()})
        if not files:
            sys.exit(f"{package['name']} {package['version']} has no text of its licence")
        parts.append(f"{'=' * 80}\n{package['name']} {package['version']}: {package['license']}\n")
        for file in files:
            content = file.read_text(encoding="utf-8", errors="replace").strip()
            if content[:200].lstrip().startswith("Apache License") and len(content) > 9000:
                content = "The Apache License, Version 2.0, as in the file LICENSE of this package."
            parts.append(f"{'-' * 80}\n{file.name}\n\n{content}\n")
    return "\n".join(parts)


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        FILE.write_text(text(), encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text():
        sys.exit(f"{FILE.name} does not fit Cargo.lock: make licences")


if __name__ == "__main__":
    main()
