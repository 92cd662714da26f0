"""The package: finding, checking and loading the library, and what the library is made of."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

import blockcell
from blockcell import elf, loader
from blockcell.op_table import CUDNN, OPS, STOCK
from helpers import isolated

TF1 = tf.__version__.startswith("1.")
MINOR = ".".join(tf.__version__.split(".")[:2])


def test_load_is_idempotent():
    module = blockcell.load()
    assert blockcell.load() is module
    assert blockcell.load(blockcell.find_library()) is module
    assert blockcell.load(str(blockcell.find_library())) is module


def test_info():
    answer = blockcell.info()
    assert set(answer) == {
        "loaded",
        "library",
        "problem",
        "version",
        "tensorflow_built_for",
        "tensorflow_running",
        "isa",
        "weights",
        "float32_matmul_precision",
        "float32_matmul_runs",
        "ops",
        "taken_over",
        "override",
        "cudnn",
        "rewrite",
        "rewritten",
        "failed_passes",
        "kept_weight_bytes",
        "runs",
        "runs_in_int8",
        "runs_in_bfloat16",
        "int8_errors",
        "labels",
        "layers",
    }
    assert answer["loaded"] and answer["problem"] is None
    assert answer["library"] == str(blockcell.find_library())
    assert answer["version"] == blockcell.__version__
    assert answer["tensorflow_running"] == tf.__version__
    assert answer["tensorflow_built_for"].startswith(MINOR + ".")
    assert answer["isa"] in (
        *("avx512_bf16", "avx512_vnni", "avx512", "avx2_vnni", "avx2"),
        *("neon_dotprod", "neon", "portable"),
    )
    assert sorted(answer["ops"]) == sorted([*OPS, *CUDNN])
    assert answer["override"] == "off" and answer["taken_over"] == []  # As conftest.py sets it.


def test_info_before_loading_tells_what_would_be_loaded(nothing_loaded, monkeypatch, tmp_path):
    before = blockcell.info()
    assert not before["loaded"] and before["problem"] is None and before["isa"] is None
    assert before["library"] == str(blockcell.find_library())
    assert before["tensorflow_built_for"] == MINOR
    monkeypatch.setenv("BLOCKCELL_LIBRARY", str(tmp_path / "absent.so"))
    without = blockcell.info()
    assert without["library"] is None and "BLOCKCELL_LIBRARY" in without["problem"]
    assert not loader._loaded


# Messages.


@pytest.fixture
def nothing_loaded(monkeypatch):
    monkeypatch.setattr(loader, "_loaded", {})
    monkeypatch.delenv("BLOCKCELL_LIBRARY", raising=False)


@pytest.fixture
def installed_package(monkeypatch, nothing_loaded, tmp_path):
    """The package as installed, outside its source tree, with a library for another TensorFlow."""
    package = tmp_path / "site-packages" / "blockcell"
    build = package / "lib" / "tf-9.9" / "libblockcell.so"
    build.parent.mkdir(parents=True)
    build.write_bytes(b"")
    monkeypatch.setattr(loader, "_PACKAGE", package)
    return package


def assert_says(error, *words):
    for word in words + (sys.executable, "BLOCKCELL_LIBRARY=FILE", "blockcell.load(FILE)"):
        assert str(word) in str(error.value), f"{word} is not in: {error.value}"


def test_nothing_is_built_for_this_tensorflow(installed_package):
    with pytest.raises(blockcell.LibraryNotFoundError) as error:
        blockcell.load()
    missing = installed_package / "lib" / ("tf-" + MINOR) / "libblockcell.so"
    assert_says(error, "TensorFlow " + tf.__version__, missing, "builds found: tf-9.9")
    assert isinstance(error.value, ImportError)


def test_library_inside_the_package(installed_package):
    library = installed_package / "lib" / ("tf-" + MINOR) / "libblockcell.so"
    library.parent.mkdir()
    library.write_bytes(b"")
    assert blockcell.find_library() == library


def test_library_of_the_source_tree(nothing_loaded):
    tree = Path(loader.__file__).resolve().parents[2]
    assert blockcell.find_library() == tree / "build" / ("tf-" + MINOR) / "libblockcell.so"


def test_no_such_file(nothing_loaded, tmp_path):
    with pytest.raises(blockcell.LibraryNotFoundError) as error:
        blockcell.load(tmp_path / "absent.so")
    assert_says(error, tmp_path / "absent.so", "the argument of load", "tf-" + MINOR)


def test_folder_in_the_place_of_a_file(nothing_loaded, tmp_path):
    folder = tmp_path / "libblockcell.so"
    folder.mkdir()
    with pytest.raises(blockcell.LibraryNotFoundError) as error:
        blockcell.load(folder)
    assert_says(error, f"{folder} (named by the argument of load) is a folder")


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.5, 0.9, 0.9999])
def test_library_cut_short(nothing_loaded, tmp_path, share):
    """The dynamic linker would end the process."""
    whole = blockcell.find_library().read_bytes()
    library = tmp_path / "libblockcell.so"
    library.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(blockcell.LibraryError) as error:
        blockcell.load(library)
    assert_says(error, library, f"is truncated: it has {int(len(whole) * share):,} of")


def test_library_with_more_at_its_end_is_not_cut_short(tmp_path):
    library = tmp_path / "libblockcell.so"
    library.write_bytes(blockcell.find_library().read_bytes() + b"more")
    assert 0 < elf.length(library) <= library.stat().st_size


def test_variable_comes_before_the_package(nothing_loaded, monkeypatch, tmp_path):
    library = tmp_path / "any-name.so"
    monkeypatch.setenv("BLOCKCELL_LIBRARY", str(library))
    with pytest.raises(blockcell.LibraryNotFoundError) as error:
        blockcell.load()
    assert_says(error, library, "the variable BLOCKCELL_LIBRARY")
    library.write_bytes(b"")
    assert blockcell.find_library() == library


def test_argument_comes_before_the_variable(nothing_loaded, monkeypatch, tmp_path):
    monkeypatch.setenv("BLOCKCELL_LIBRARY", str(tmp_path / "absent.so"))
    (tmp_path / "present.so").write_bytes(b"")
    assert blockcell.find_library(tmp_path / "present.so") == tmp_path / "present.so"


def test_folder_of_another_tensorflow(installed_package, tmp_path):
    library = installed_package / "lib" / "tf-9.9" / "libblockcell.so"
    link = tmp_path / "libblockcell.so"
    link.symlink_to(library)
    for path in (library, link):
        with pytest.raises(blockcell.LibraryError) as error:
            blockcell.load(path)
        assert_says(error, library, "built for TensorFlow 9.9", f"but {MINOR} is running")


def test_no_library_at_all(nothing_loaded, tmp_path):
    library = tmp_path / "libblockcell.so"
    library.write_bytes(b"not a shared object")
    with pytest.raises(blockcell.LibraryError) as error:
        blockcell.load(library)
    assert_says(error, library, "cannot load", "TensorFlow " + tf.__version__)


def other_builds():
    build = Path(loader.__file__).resolve().parents[2] / "build"
    return [lib for lib in build.glob("tf-*/libblockcell.so") if lib.parent.name != "tf-" + MINOR]


@pytest.mark.skipif(not other_builds(), reason="no build for another TensorFlow")
def test_library_of_another_tensorflow_in_disguise(nothing_loaded, tmp_path):
    """Without a folder that tells, the symbols do."""
    library = tmp_path / "libblockcell.so"
    shutil.copy(str(other_builds()[0]), str(library))
    with pytest.raises(blockcell.LibraryError) as error:
        blockcell.load(library)
    assert_says(error, library, "cannot load", "built for another TensorFlow")


def test_second_library_in_one_process(tmp_path):
    blockcell.load()
    with pytest.raises(blockcell.LibraryError, match="has loaded .*libblockcell.so"):
        blockcell.load(tmp_path / "libblockcell.so")


def test_version_is_checked_against_what_the_library_says(monkeypatch):
    answer = {"tensorflow_built_for": "9.9.0", "tensorflow_running": tf.__version__}
    monkeypatch.setattr(loader, "_run_info", lambda module: json.dumps(answer).encode())
    with pytest.raises(blockcell.LibraryError) as error:
        blockcell.info()
    assert_says(error, "built for TensorFlow 9.9.0", tf.__version__)


def test_only_commands_need_the_tools():
    """What a program imports has nothing of the benchmark, the oracles and the verification."""
    package = Path(loader.__file__).resolve().parent
    users = [path for path in package.rglob("*.py") if "blockcell_tools" in path.read_text()]
    assert {path.parent.name for path in users} == {"cli"}


# Fresh processes.


def isolated_value(name, environment=None):
    return isolated.value(isolated.run("package", [name], environment)[name])


def test_importing_the_package_does_not_import_tensorflow():
    isolated.value(isolated.run("package", ["import_alone"], imported=False)["import_alone"])


def test_info_loads_nothing():
    assert isolated_value("info_loads_nothing") == tf.__version__


def test_load_beside_the_stock_kernels():
    answer = isolated_value("load_beside_the_stock_kernels")
    assert answer["override"] == "off" and answer["taken_over"] == []


def test_take_over_false_after_taking_over_is_an_error():
    assert "pass take_over=False to the first load()" in isolated_value("take_over_comes_first")


@pytest.fixture(scope="module")
def after_loading():
    names = ["load_from_many_threads"] + (["contrib_after_loading"] if TF1 else [])
    return isolated.run("package", names)


def test_load_from_many_threads(after_loading):
    isolated.value(after_loading["load_from_many_threads"])


@pytest.mark.skipif(not TF1, reason="TensorFlow 1.15 only")
def test_contrib_can_be_imported_after_loading(after_loading):
    isolated.value(after_loading["contrib_after_loading"])


def test_tensorflow_can_be_configured_after_loading():
    isolated_value("configure_after_loading")


def test_info_without_eager_mode():
    names = ["info_without_eager_mode", "info_in_a_graph"]
    outcomes = [isolated.value(outcome) for outcome in isolated.run("package", names).values()]
    assert outcomes[0] == outcomes[1]


def test_plain_load_op_library():
    answer = isolated_value("plain_load")
    assert sorted(answer["ops"]) == sorted([*OPS, *CUDNN])
    assert sorted(answer["taken_over"]) == sorted(STOCK)
    assert answer["override"] == ("graph_pass" if TF1 else "priority")


def test_loading_prints_nothing():
    assert isolated_value("what_loading_prints", {"TF_CPP_MIN_LOG_LEVEL": None}) == "end"


# The shared object.


def symbols(path, *options):
    """Names of a shared object's dynamic symbols, without versions."""
    listing = subprocess.run(
        ["nm", "-D", "--format=posix"] + list(options) + [str(path)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    return {line.split()[0].split("@")[0]: line.split()[1] for line in listing.splitlines()}


def test_only_functions_for_python_are_exported():
    exported = symbols(blockcell.find_library(), "--defined-only")
    assert set(exported) == {"blockcell_float32_matmul_precision", "blockcell_note_int8_errors"}


def test_undefined_symbols_are_tensorflows_and_the_systems():
    wanted = symbols(blockcell.find_library(), "--undefined-only")
    assert any(name.startswith("_ZN10tensorflow") for name in wanted)
    system = re.compile(r"/(ld-linux|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+))[-.\w]*\.so")
    with open("/proc/self/maps") as maps:
        loaded = sorted({line.split()[-1] for line in maps if ".so" in line})
    providers = [path for path in loaded if system.search(path)]
    providers += [path for path in loaded if "libtensorflow" in path or "pywrap_tensorflow" in path]
    missing = {name for name, kind in wanted.items() if kind not in "wv"}  # But the weak ones.
    for provider in providers:
        missing -= set(symbols(provider, "--defined-only"))
    assert not missing
