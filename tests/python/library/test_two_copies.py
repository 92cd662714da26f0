"""A library that is loaded from two files refuses to load from the second one."""

from helpers import isolated


def test_a_second_copy_is_refused_and_the_first_one_works_on():
    name = "load_a_second_copy"
    said = isolated.value(isolated.run("two_copies", [name])[name])
    assert "has already loaded libblockcell.so from another file" in said
