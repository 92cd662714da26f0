"""Building and installing: what `building`, `setup.py` and the wheel's scripts rely on."""

import functools
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import tensorflow as tf

import blockcell
from blockcell import building

ROOT = Path(__file__).resolve().parents[3]
FROM_SOURCE = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
SCRIPTS = ROOT / "scripts"
FLAGS = SCRIPTS / "tensorflow_flags.py"


@functools.lru_cache(maxsize=None)
def answer_of(*words):
    printed = subprocess.run(
        [sys.executable, "-W", "ignore", str(FLAGS), *words],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout
    return printed.partition("blockcell\n")[2]


def test_flags_of_an_unpacked_package_are_those_of_tensorflow():
    """The wheel's libraries are compiled without importing the TensorFlow they are for."""
    assert answer_of(str(Path(tf.sysconfig.get_lib()))) == answer_of()


def test_answer_of_this_python():
    answer = building.ask(ROOT, sys.executable)
    assert answer == answer_of()
    assert building.folder_name(answer.splitlines()[0]) == "tf-" + ".".join(
        tf.__version__.split(".")[:2]
    )


def without(monkeypatch, *tools):
    """A PATH on which these tools are not found."""
    found = building.shutil.which
    monkeypatch.setattr(
        building.shutil, "which", lambda name: None if name in tools else found(name) or name
    )
    monkeypatch.delenv("CXX", raising=False)


@pytest.mark.parametrize("tool, words", [("cargo", "cargo is missing"), ("c++", "C++ compiler")])
def test_missing_tool_is_one_line(tool, words, monkeypatch):
    without(monkeypatch, tool)
    with pytest.raises(building.BuildError, match=words.replace("+", r"\+")) as error:
        building.check_tools()
    assert len(str(error.value).splitlines()) == 1


def test_missing_tensorflow_is_one_line(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho \"No module named 'tensorflow'\" >&2\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(building.BuildError, match="TensorFlow is missing in") as error:
        building.ask(ROOT, python)
    assert len(str(error.value).splitlines()) == 1
    with pytest.raises(building.BuildError, match="cannot run"):
        building.ask(ROOT, tmp_path / "absent")


@pytest.mark.once
def test_newer_tensorflow_is_a_warning():
    for version in ("1.15.5", "2.4.4", "2.21.0", building.NEWEST_TESTED + ".7rc1"):
        assert building.newer_than_tested(version) is None
    for version in ("2.22.0.dev20260905", "2.100.0", "3.0.0"):
        warning = building.newer_than_tested(version)
        assert version in warning and "run blockcell verify" in warning


def test_load_warns_of_a_newer_tensorflow(monkeypatch, caplog):
    monkeypatch.setattr(building, "NEWEST_TESTED", "1.14")
    blockcell.loader._warn_of_newer()
    (record,) = caplog.records
    assert (
        record.levelname == "WARNING" and f"TensorFlow {tf.__version__} is newer" in record.message
    )


def test_target_python(monkeypatch):
    """What pip sets to isolate a build does not hide the environment's TensorFlow."""
    monkeypatch.delenv(building.PYTHON_VARIABLE, raising=False)
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    assert building.target_python() == sys.executable
    monkeypatch.setenv(building.PYTHON_VARIABLE, "/named/python")
    assert building.target_python() == "/named/python"


def test_target_python_without_tensorflow(monkeypatch):
    monkeypatch.delenv(building.PYTHON_VARIABLE, raising=False)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setattr(building, "_has_tensorflow", lambda python: False)
    with pytest.raises(building.BuildError, match="pip install tensorflow"):
        building.target_python()


def test_a_library_newer_than_its_sources_is_not_built_again(tmp_path):
    library = tmp_path / "tf-9.9" / building.LIBRARY
    library.parent.mkdir()
    library.write_bytes(b"")
    assert building.build(ROOT, tmp_path, "9.9.0\nlink\n") == library


def test_the_library_names_no_folder_of_the_machine_that_built_it():
    """So the same sources give the same bytes anywhere; `make reproducible` compares them."""
    content = blockcell.find_library().read_bytes()
    cargo = os.environ.get("CARGO_HOME") or os.path.expanduser("~/.cargo")
    for folder in (str(ROOT), cargo, tf.sysconfig.get_include()):
        assert folder.encode() not in content, folder


def test_sources_are_complete(tmp_path):
    """Cargo finds all that its manifests name among what a wheel carries and an sdist has."""
    manifest = (ROOT / "MANIFEST.in").read_text().split()
    for name in building.SOURCES + building.NAMED_SOURCES:
        assert name in manifest or name.split("/")[0] in manifest, name
    building.copy_sources(ROOT, tmp_path)
    # It reads all manifests, and builds the smallest package.
    command = ["cargo", "check", "--locked", "--quiet", "--package", "blockcell-failpoints"]
    subprocess.run(command, check=True, cwd=str(tmp_path))


def test_importing_the_package_needs_nothing():
    """A build imports it where there are neither NumPy nor click, nor TensorFlow."""
    code = (
        "import sys\n"
        "for name in ('numpy', 'click', 'rich', 'tensorflow'): sys.modules[name] = None\n"
        "import blockcell, blockcell.building\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env=FROM_SOURCE,
    )


def test_command_line_names_what_is_missing():
    code = "import sys\nsys.modules['click'] = None\nfrom blockcell.__main__ import main\nmain()\n"
    process = subprocess.run(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        text=True,
        env=FROM_SOURCE,
    )
    assert process.returncode == 1
    assert "pip install click rich" in process.stderr.splitlines()[-1]


def test_unpacking_a_wheel_merges_what_an_installation_would(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import make_wheel

    wheel = tmp_path / "tensorflow-1.15.5.whl"
    with zipfile.ZipFile(str(wheel), "w") as archive:
        archive.writestr("tensorflow_core/include/a.h", "")
        archive.writestr("tensorflow-1.15.5.data/purelib/tensorflow_core/include/b.h", "")
        archive.writestr("tensorflow_core/python/large.py", "")
    make_wheel.unpack(wheel, tmp_path / "unpacked")
    found = sorted(path.name for path in (tmp_path / "unpacked").rglob("*") if path.is_file())
    assert found == ["a.h", "b.h"]


def test_a_release_that_cannot_be_had_is_left_out(tmp_path, monkeypatch, capsys):
    """There is no package in the folder in which pip may look."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import make_wheel

    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setattr(make_wheel, "work", lambda arch: tmp_path / arch)
    real = make_wheel.build_library

    def build_library(arch, minor, *words):
        if minor != "2.18":
            real(arch, minor, *words)

    monkeypatch.setattr(make_wheel, "build_library", build_library)
    assert make_wheel.build_libraries("aarch64", ["2.18", "2.19"]) == ["2.18"]
    said = capsys.readouterr().err
    assert "TensorFlow 2.19: LEFT OUT, ERROR: No matching distribution found" in said
    with pytest.raises(SystemExit, match=r"2\.19: LEFT OUT"):
        make_wheel.build_libraries("aarch64", ["2.18", "2.19"], require=True)


def test_a_python_that_is_missing_fails_where_all_are_required(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import test_wheel

    monkeypatch.setattr(test_wheel, "FOLDER", tmp_path)
    monkeypatch.setattr(test_wheel, "find_python", lambda version: None)
    for words, code in (([], 0), (["--require"], 1)):
        argv = ["test_wheel.py", "--minors", "2.21", "--wheel", str(tmp_path), *words]
        monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as raised:
            test_wheel.main()
        assert raised.value.code == code
        assert "left out: no such Python" in capsys.readouterr().out


def test_releases_of_the_wheel(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import make_wheel

    releases = make_wheel.releases("x86_64")
    assert {"1.15", "2.4", "2.12", "2.16", "2.18", "2.21"} <= {release[0] for release in releases}
    others = make_wheel.releases("aarch64")
    assert {release[0] for release in others} < {release[0] for release in releases}
    for minor, package, _, _ in releases + others:
        assert package.split("==")[1].startswith(minor + ".")


# Releases


@pytest.mark.once
@pytest.mark.parametrize("script", ["set_version.py", "licences.py"])
def test_what_a_release_writes_is_written(script):
    """The version in all files, and the notices of linked crates."""
    if script == "licences.py" and building.shutil.which("cargo") is None:
        pytest.skip("cargo tells which crates are linked")
    subprocess.run([sys.executable, str(SCRIPTS / script), "--check"], check=True)


@pytest.mark.once
def test_changelog_has_the_version_and_its_date():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{blockcell.__version__}] - 20" in text
    assert (ROOT / "pyproject.toml").read_text().count("THIRD_PARTY_LICENSES.txt") == 1
