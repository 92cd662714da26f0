"""Writes the version of `python/blockcell/version.py` wherever else it has to stand.

    python3 scripts/set_version.py            writes
    python3 scripts/set_version.py --check    ends with 1 if something differs

Cargo spells a release candidate in its own way: 1.0.0-rc.1 is Python's 1.0.0rc1.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_WORDS = {"a": "alpha", "b": "beta", "rc": "rc"}
_CRATES = r"blockcell(?:-failpoints|-graphs|-kernels)?"
LOCKS = ("Cargo.lock", "fuzz/Cargo.lock", "tests/host/Cargo.lock")


def version():
    """The version, as Python spells it."""
    text = (ROOT / "python" / "blockcell" / "version.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.*)"$', text, re.MULTILINE).group(1)


def of_cargo(python):
    """The same as Cargo spells it."""
    return re.sub(r"(a|b|rc)(\d+)$", lambda found: f"-{_WORDS[found[1]]}.{found[2]}", python)


def rewritten():
    """What each file has to hold, by its name."""
    cargo = of_cargo(version())
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    manifest = re.sub(r'(\[workspace\.package\]\nversion = ")[^"]*', rf"\g<1>{cargo}", manifest)
    named = rf'^({_CRATES} = {{ path = "[a-z]+", version = ")[^"]*'
    files = {"Cargo.toml": re.sub(named, rf"\g<1>{cargo}", manifest, flags=re.MULTILINE)}
    for name in LOCKS:
        text = (ROOT / name).read_text(encoding="utf-8")
        own = rf'^(name = "{_CRATES}"\nversion = ")[^"]*(?="\n(?!source))'
        files[name] = re.sub(own, rf"\g<1>{cargo}", text, flags=re.MULTILINE)
    return files


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    is_check = parser.parse_args().check
    for name, text in rewritten().items():
        if (ROOT / name).read_text(encoding="utf-8") != text:
            if is_check:
                sys.exit(f"{name} has another version than version.py: make version")
            (ROOT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
