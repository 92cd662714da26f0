"""Builds the library twice, in two places, and compares the bytes: `make reproducible`.

The second build has its sources, its target directory, cargo's folder and TensorFlow elsewhere. Run
it by the Python whose TensorFlow the library is for.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TREE / "python"))

from blockcell import building  # noqa: E402


def main():
    """Ends with status 1 if the two libraries differ; they are kept then."""
    try:
        building.check_tools()
        answer = building.ask(TREE, sys.executable)
        first, second = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp(prefix="elsewhere-"))
        here = built(first / "tree", answer)
        elsewhere = built(second / "a" / "deeper" / "tree", moved(answer, second))
    except building.BuildError as error:
        sys.exit(f"blockcell: {error}")
    if here.read_bytes() != elsewhere.read_bytes():
        sys.exit(f"the library depends on where it is built: compare {here} and {elsewhere}")
    print(f"both builds: {hashlib.sha256(here.read_bytes()).hexdigest()}")
    for folder in (first, second):
        shutil.rmtree(str(folder))


def built(tree, answer):
    """Copies the sources to a folder, and builds the library there."""
    building.copy_sources(TREE, tree)
    return building.build(tree, tree / "build", answer)


def moved(answer, folder):
    """Gives cargo and TensorFlow other names, by links, for the builds from here on."""
    cargo = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    (folder / "cargo").mkdir()
    for name in ("registry", "config.toml"):
        if (cargo / name).exists():
            (folder / "cargo" / name).symlink_to(cargo / name)
    os.environ["CARGO_HOME"] = str(folder / "cargo")
    include = next(line[2:] for line in answer.splitlines() if line.startswith("-I"))
    package = os.path.dirname(include)
    (folder / "tensorflow").symlink_to(package)
    return answer.replace(package, str(folder / "tensorflow"))


if __name__ == "__main__":
    main()
