"""Loading the library's file twice: by another path, after somebody else, and from a copy."""

import os
import shutil

import pytest

import blockcell
from helpers import isolated


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs one of `loading`'s in a process of its own."""
    folder = tmp_path_factory.mktemp("paths")
    library, copy = (folder / name / "libblockcell.so" for name in ("library", "copy"))
    for path in (library, copy):
        path.parent.mkdir()
        shutil.copy(str(blockcell.find_library()), str(path))
    (folder / "link.so").symlink_to(library)
    os.link(str(library), str(folder / "hard_link.so"))
    places = {"BLOCKCELL_TEST_FOLDER": str(folder), "BLOCKCELL_LIBRARY": str(library)}

    def run(name):
        # The linker reads this when a process starts: such a process cannot be forked.
        by_name = {"LD_LIBRARY_PATH": str(library.parent)} if name == "load_by_its_name" else {}
        return isolated.value(isolated.run("loading", [name], {**places, **by_name})[name])

    return run


@pytest.mark.parametrize(
    "name",
    [
        "load_by_a_relative_path",
        "load_by_a_relative_path_from_elsewhere",
        "load_by_a_symbolic_link",
        "load_by_a_hard_link",
        "load_by_its_name",
        "load_from_cpp",
        "load_by_other_paths_afterwards",
    ],
)
def test_one_file_by_two_paths(run, name):
    run(name)


def test_file_that_tensorflow_has_not_loaded(run):
    assert "has registered nothing" in run("load_without_tensorflow")


def test_copy_before(run):
    for message in run("load_after_a_copy"):
        assert message.startswith("blockcell: cannot load ")
        assert "copy/libblockcell.so, and one process can load only one library" in message


def test_copy_afterwards(run):
    assert run("load_a_copy_afterwards")
