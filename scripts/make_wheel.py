"""Makes the wheel: libraries for every TensorFlow of `wheel_tensorflows.txt`, one platform tag.

With ``--arch aarch64``, for that machine: of `wheel_tensorflows_aarch64.txt`, and by the tools that
`aarch64.sh` names.

Run by ``make wheel``, in the environment of `python/requirements/wheel.txt`. To compile for a
TensorFlow takes its headers and its framework library only, so its package is downloaded and those
are unpacked; no Python has to be able to import it. What is there already is not made again. A
release whose package cannot be downloaded is left out, and said to be; one for which the library
cannot be compiled is an error.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import symbol_versions  # noqa: E402

from blockcell import building  # noqa: E402

MOST_BYTES = 30 * 1000 * 1000
X86_64 = "x86_64"
ARCHITECTURES = (X86_64, "aarch64")
PLATFORMS = ("manylinux1", "manylinux2010", "manylinux2014", "manylinux_2_17", "manylinux_2_27")


class Unavailable(Exception):
    """A release's package cannot be downloaded; the message is pip's last line."""


def table(arch):
    """The name of the list of releases for a machine."""
    return "wheel_tensorflows.txt" if arch == X86_64 else f"wheel_tensorflows_{arch}.txt"


def work(arch):
    """The folder of what is downloaded and built for a machine."""
    return ROOT / "build" / ("wheel" if arch == X86_64 else f"wheel-{arch}")


def releases(arch):
    """Lines of the table: minor release, package with version, Python, and a list of pins."""
    text = (ROOT / "scripts" / table(arch)).read_text(encoding="utf-8")
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return [(minor, package, python, pins) for minor, package, python, *pins in lines]


def unpacked(arch, minor, package, python):
    """The folder of a release's headers and framework library; downloads it if needed."""
    folder = work(arch) / "tensorflow" / minor
    if not (folder / "complete").exists():
        shutil.rmtree(str(folder), ignore_errors=True)
        download = folder / "download"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", python]
        command += [f"--platform={platform}_{arch}" for platform in PLATFORMS]
        done = subprocess.run(
            [*command, "--dest", str(download), package], stderr=subprocess.PIPE, text=True
        )
        if done.returncode != 0:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise Unavailable((said or ["pip says nothing"])[-1])
        (wheel,) = download.glob("*.whl")
        unpack(wheel, folder)
        shutil.rmtree(str(download))
        (folder / "complete").touch()
    (package_folder,) = {path.parent for path in folder.glob("**/libtensorflow_framework.so.*")}
    return package_folder


def unpack(wheel, folder):
    """Unpacks what compiling needs to where an installation would put it."""
    with zipfile.ZipFile(str(wheel)) as archive:
        for entry in archive.infolist():
            # An installation merges these with the rest.
            name = re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", entry.filename)
            if not _is_needed(name) or entry.is_dir():
                continue
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, path.open("wb") as target:
                shutil.copyfileobj(source, target)


def _is_needed(name):
    parts = name.split("/")
    return (
        parts[1:2] == ["include"]
        or parts[-1].startswith("libtensorflow_framework.so.")
        or name.endswith(".dist-info/METADATA")
    )


def build_library(arch, minor, package, python):
    """Builds the library of a release, and puts it, stripped, among those of the wheel."""
    folder = unpacked(arch, minor, package, python)
    answer = building.ask(ROOT, sys.executable, folder)
    library = building.build(ROOT, work(arch) / "built", answer)
    name = library.parent.name
    if name != "tf-" + minor:
        sys.exit(f"{package} is {name}, not {minor}")
    stripped = work(arch) / "lib" / name / library.name
    stripped.parent.mkdir(parents=True, exist_ok=True)
    strip = os.environ.get("STRIP") or "strip"
    subprocess.run([strip, "--strip-all", "-o", str(stripped), str(library)], check=True)


def build_libraries(arch, minors, require=False):
    """Builds the libraries of these minor releases; returns the minors that have one now.

    Where all are required, one whose package cannot be downloaded ends the program.
    """
    shutil.rmtree(str(work(arch) / "lib"), ignore_errors=True)
    built = []
    for minor, package, python, _ in releases(arch):
        if minor not in minors:
            continue
        print(f"TensorFlow {minor}: {package}", flush=True)
        try:
            build_library(arch, minor, package, python)
        except Unavailable as error:
            said = f"TensorFlow {minor}: LEFT OUT, {error}"
            if require:
                sys.exit(said)
            print(said, file=sys.stderr, flush=True)
        else:
            built.append(minor)
    return built


def check_platform(arch, name):
    """Ends the program if auditwheel has named a platform newer than the one of the libraries."""
    glibc = re.search(rf"[-.]manylinux_(\d+)_(\d+)_{arch}\.", name)
    if glibc is None or tuple(map(int, glibc.groups())) > symbol_versions.PLATFORM:
        sys.exit(f"{name} is not for {symbol_versions.NAME}: `auditwheel show` tells why")


def make(arch, minors, require=False):
    """Makes the wheel with libraries for these minor releases; returns its path."""
    minors = build_libraries(arch, minors, require)
    if not minors:
        sys.exit("no TensorFlow could be downloaded")
    symbol_versions.check(sorted(work(arch).glob("lib/*/" + building.LIBRARY)))
    plain = work(arch) / "plain"
    shutil.rmtree(str(plain), ignore_errors=True)
    # The second is what Python's own build for other machines tells setuptools.
    environment = dict(os.environ, BLOCKCELL_LIBRARIES=str(work(arch) / "lib"))
    environment["_PYTHON_HOST_PLATFORM"] = f"linux-{arch}"
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(plain), str(ROOT)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = plain.glob("*.whl")
    tagged = work(arch) / "tagged"
    shutil.rmtree(str(tagged), ignore_errors=True)
    # TensorFlow is there when the library is loaded; auditwheel must not look for it.
    command = [str(Path(sys.executable).parent / "auditwheel"), "repair", "--only-plat"]
    command += ["--exclude", "libtensorflow_framework.so.*", "--wheel-dir", str(tagged), str(wheel)]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(command, env=dict(os.environ, PATH=path), check=True)
    (made,) = tagged.glob("*.whl")
    check_platform(arch, made.name)
    size = made.stat().st_size
    if size > MOST_BYTES:
        sys.exit(f"{made.name} has {size / 1e6:.1f} MB, allowed are {MOST_BYTES / 1e6:.0f}")
    target = ROOT / "dist" / made.name
    target.parent.mkdir(exist_ok=True)
    shutil.copy(str(made), str(target))
    print(f"{target.relative_to(ROOT)}: {size / 1e6:.1f} MB, TensorFlow {', '.join(minors)}")
    return target


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=make.__doc__)
    parser.add_argument("--arch", choices=ARCHITECTURES, default=platform.machine())
    parser.add_argument("--minors", nargs="+", help="default: all of the table")
    parser.add_argument("--require", action="store_true", help="leave none out")
    arguments = parser.parse_args()
    known = [release[0] for release in releases(arguments.arch)]
    minors = arguments.minors or known
    unknown = [minor for minor in minors if minor not in known]
    if unknown:
        parser.error(f"{table(arguments.arch)} does not have {', '.join(unknown)}")
    try:
        make(arguments.arch, minors, arguments.require)
    except building.BuildError as error:
        sys.exit(f"blockcell: {error}")


if __name__ == "__main__":
    main()
