"""Builds the library from its sources, for the TensorFlow of a Python.

Used by `pip install` (through setup.py), by `make lib` (scripts/build_lib.sh) and by the
command `blockcell build`. Needs no TensorFlow in this process.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from blockcell.version import __version__

LIBRARY = "libblockcell.so"
PYTHON_VARIABLE = "BLOCKCELL_PYTHON"
FLAGS_VARIABLE = "BLOCKCELL_FLAGS"
TARGET_VARIABLE = "CARGO_BUILD_TARGET"
"""Cargo's own: what to build for, such as `aarch64-unknown-linux-gnu`, if not for this machine."""

NEWEST_TESTED = "2.21"
"""The newest minor release of TensorFlow that all tests were run with."""

SOURCES = (
    *("Cargo.toml", "Cargo.lock", "build.rs", "cpp", "link", "src"),
    *("failpoints/Cargo.toml", "failpoints/src"),
    *("graphs/Cargo.toml", "graphs/README.md", "graphs/src"),
    *("kernels/Cargo.toml", "kernels/README.md", "kernels/src"),
    "scripts/tensorflow_flags.py",
)
"""Files and folders of the source tree that a library is made of."""

NAMED_SOURCES = ("graphs/benches", "kernels/benches", "kernels/examples")
"""Others that cargo wants to find, because manifests name them."""

_PACKAGE = Path(__file__).resolve().parent


def copy_sources(tree: Path, to: Path) -> None:
    """Copies what a build needs from a source tree to a folder."""
    for name in SOURCES + NAMED_SOURCES:
        source, copy = tree / name, to / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(str(source), str(copy))


class BuildError(Exception):
    """The library cannot be built. The message is one line, and says what to do."""


def source_tree() -> Optional[Path]:
    """The sources that this package can be built from, or None.

    These are the source tree that the package is used from, or the copy that a wheel carries.
    """
    for tree in (_PACKAGE.parent.parent, _PACKAGE / "source"):
        if (tree / "Cargo.toml").is_file() and (tree / "build.rs").is_file():
            return tree
    return None


def user_folder() -> Path:
    """Where `blockcell build` puts what it makes: a folder of this user, for this version."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache) / "blockcell" / __version__


def target_of(tree: Path) -> Path:
    """Cargo's target directory for these sources; a wheel's may lie where users cannot write."""
    return user_folder() / "target" if tree == _PACKAGE / "source" else Path(tree) / "target"


def check_tools() -> None:
    """Checks that cargo and a C++ compiler are there.

    Raises:
      BuildError: One of them is missing.
    """
    if shutil.which("cargo") is None:
        raise BuildError(
            "cargo is missing: install Rust 1.89 or later (https://rustup.rs), and put cargo on "
            "the PATH"
        )
    if shutil.which(os.environ.get("CXX") or "c++") is None:
        raise BuildError("a C++ compiler is missing: install g++, or set CXX")


def ask(tree: Path, python: str, package: Optional[Path] = None) -> str:
    """Asks a Python for the version and flags of its TensorFlow.

    Args:
      tree: The sources.
      python: The interpreter.
      package: The folder of an unpacked package of TensorFlow to ask of instead, which may be
        for another machine.

    Returns:
      The answer of `scripts/tensorflow_flags.py`, as text that begins with the version.

    Raises:
      BuildError: There is no such interpreter, or it cannot import TensorFlow.
    """
    script = str(Path(tree) / "scripts" / "tensorflow_flags.py")
    try:
        process = subprocess.run(
            [str(python), "-W", "ignore", script, *([str(package)] if package else [])],
            env=dict(outside_isolation(), TF_CPP_MIN_LOG_LEVEL="3"),
            capture_output=True,
            text=True,
        )
    except OSError as error:
        raise BuildError(f"cannot run {python}: {error.strerror}") from error
    _, _, answer = process.stdout.partition("blockcell\n")
    if process.returncode != 0 or not answer:
        said = process.stderr.strip().splitlines() or ["no message"]
        raise _missing_tensorflow(f"{python} ({said[-1]})")
    return answer


def _missing_tensorflow(place: str) -> BuildError:
    return BuildError(
        f"TensorFlow is missing in {place}: install it there first (pip install tensorflow), or "
        f"set {PYTHON_VARIABLE} to another Python"
    )


def outside_isolation() -> Dict[str, str]:
    """The environment without what pip sets to hide the installed packages from a build."""
    hidden = ("PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONHOME")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def target_python() -> str:
    """The Python that a package under construction is for.

    pip runs a build by the interpreter that it installs for, and hides only that one's packages.
    Other tools make an environment for the build; there the active environment counts.

    Raises:
      BuildError: None of the candidates has a TensorFlow.
    """
    named = os.environ.get(PYTHON_VARIABLE)
    if named:
        return named
    active = os.environ.get("VIRTUAL_ENV")
    candidates = [sys.executable] + ([os.path.join(active, "bin", "python")] if active else [])
    for python in candidates:
        if _has_tensorflow(python):
            return python
    raise _missing_tensorflow(candidates[0])


def _has_tensorflow(python: str) -> bool:
    """Whether a Python finds the package, which is quicker than to import it."""
    find = "import importlib.util as u, sys; sys.exit(u.find_spec('tensorflow') is None)"
    try:
        return subprocess.run([python, "-c", find], env=outside_isolation()).returncode == 0
    except OSError:
        return False


def folder_name(version: str) -> str:
    """`"tf-2.21"` of `"2.21.0"`: the folder of the library for this TensorFlow."""
    return "tf-" + minor(version)


def minor(version: str) -> str:
    """`"2.21"` of `"2.21.0"`, `"2.21.0rc1"` or `"2.21.0-dev20260101"`."""
    return ".".join(version.split(".")[:2])


def newer_than_tested(version: str) -> Optional[str]:
    """A sentence for a TensorFlow that is newer than what was tested; None for others.

    Args:
      version: Such as `"2.22.0"`.
    """
    if _numbers(version) <= _numbers(NEWEST_TESTED):
        return None
    return (
        f"TensorFlow {version} is newer than {NEWEST_TESTED}, the newest that blockcell "
        f"{__version__} was tested with: run blockcell verify before you rely on it."
    )


def _numbers(version: str) -> Tuple[int, ...]:
    """`(2, 21)` of `"2.21.0rc1"`."""
    return tuple(int(number) for number in re.findall(r"\d+", minor(version))[:2])


def build(tree: Path, folder: Path, answer: str, feature: str = "", quiet: bool = False) -> Path:
    """Builds the library, unless it is there and newer than its sources.

    All builds may share one target directory, so the kernels are compiled once. Only the shim and
    the bridge are compiled for each TensorFlow.

    Args:
      tree: The sources.
      folder: The library goes to `tf-<major.minor>/libblockcell.so` in here.
      answer: What `ask` returned.
      feature: A feature to switch on, or empty.
      quiet: Whether cargo's output is shown only if it fails.

    Returns:
      The library's path.

    Raises:
      BuildError: It cannot be built.
    """
    target = target_of(tree)
    name = folder_name(answer.splitlines()[0])
    library = folder / name / LIBRARY
    if library.exists() and not _newer_sources(tree, library):
        return library
    check_tools()
    warning = newer_than_tested(answer.splitlines()[0])
    if warning is not None:
        print(f"blockcell: {warning}", file=sys.stderr)
    # cargo's folder for what it builds for another machine.
    output = target / os.environ.get(TARGET_VARIABLE, "")
    flags = output / "flags" / (name + ".txt")
    if not (flags.exists() and flags.read_text(encoding="utf-8") == answer):
        flags.parent.mkdir(parents=True, exist_ok=True)
        flags.write_text(answer, encoding="utf-8")
    built = output / "release" / LIBRARY
    # cargo gives the library for each TensorFlow the same name: without the old one it cannot take
    # it for this.
    with contextlib.suppress(FileNotFoundError):
        (output / "release" / "deps" / LIBRARY).unlink()
    command = ["cargo", "build", "--locked", "--quiet", "--release", "--package", "blockcell"]
    command += ["--target-dir", str(target)] + (["--features", feature] if feature else [])
    command += flags_of_cargo(target)
    environment = dict(os.environ, CXXFLAGS=_cxx_flags(_named_folders(target)))
    environment[FLAGS_VARIABLE] = str(flags.resolve())
    _run_cargo(command, tree, environment, quiet)
    library.parent.mkdir(parents=True, exist_ok=True)
    # Not in place: a process may have the old library mapped.
    fresh = library.with_suffix(".new")
    shutil.copy(str(built), str(fresh))
    fresh.replace(library)
    return library


def _named_folders(target: Path) -> Dict[str, str]:
    """Folders of this machine, and what the library calls them.

    Panics name the file and line of sources. With these names, the same sources give the same
    library, wherever they, cargo's folder and the target directory lie.
    """
    cargo = os.environ.get("CARGO_HOME") or os.path.join(os.path.expanduser("~"), ".cargo")
    return {os.path.abspath(cargo): "cargo", os.path.abspath(str(target)): "target"}


def flags_of_cargo(target: Path) -> List[str]:
    """Options of cargo for these names: with the same ones, it builds the kernels once for all."""
    named = [f"--remap-path-prefix={path}={name}" for path, name in _named_folders(target).items()]
    return ["--config", f"build.rustflags={json.dumps(named)}"]


def _cxx_flags(folders: Dict[str, str]) -> str:
    """The user's flags of the C++ compiler, and those for these names, if it knows them."""
    named = [
        f"-ffile-prefix-map={folder}={name}"
        for folder, name in folders.items()
        if len(folder.split()) == 1  # Spaces separate flags.
    ]
    compiler = os.environ.get("CXX") or "c++"
    known = subprocess.run(  # GCC before 8 does not.
        [*compiler.split(), "-ffile-prefix-map=a=b", "-E", "-x", "c++", os.devnull],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    words = [os.environ.get("CXXFLAGS", ""), *(named if known.returncode == 0 else [])]
    return " ".join(words).strip()


def _newer_sources(tree: Path, library: Path) -> bool:
    """Whether a source was changed after the library was built."""
    built = library.stat().st_mtime
    paths = [tree / name for name in SOURCES]
    files = (file for path in paths for file in ([path] if path.is_file() else path.rglob("*")))
    return any(file.stat().st_mtime > built for file in files)


def _run_cargo(command: List[str], tree: Path, environment: Dict[str, str], quiet: bool) -> None:
    process = subprocess.run(
        command,
        cwd=str(tree),
        env=environment,
        stderr=subprocess.PIPE if quiet else None,
        text=True,
    )
    if process.returncode != 0:
        if quiet:
            sys.stderr.write(process.stderr)
        raise BuildError("cargo could not build the library: see its messages above")


def main() -> None:
    """Builds for the TensorFlow of this Python, into `build/` of the source tree."""
    parser = argparse.ArgumentParser(prog="build_lib.sh PYTHON", description=main.__doc__)
    parser.add_argument("variant", nargs="?", default="", choices=["", "failpoints"])
    parser.add_argument("--package", type=Path, help="the folder of another, unpacked TensorFlow")
    arguments = parser.parse_args()
    variant = arguments.variant
    feature = f"blockcell-{variant}/on" if variant else ""
    machine = os.environ.get(TARGET_VARIABLE, "").partition("-")[0]
    tree = source_tree()
    try:
        if tree is None:
            raise BuildError("there are no sources: run this in a source tree")
        check_tools()
        answer = ask(tree, sys.executable, arguments.package)
        print(build(tree, tree / "build" / machine / variant, answer, feature))
    except BuildError as error:
        sys.exit(f"blockcell: {error}")


if __name__ == "__main__":
    main()
