"""What the graph passes say they do, and the configuration that keeps them from it."""

import pytest

from helpers import isolated

LOGGED = ["log", "off_for_a_session", "on_for_a_session"]


@pytest.fixture(scope="module")
def runs():
    switches = {"BLOCKCELL_REWRITE": None}
    loud = isolated.run("rewrite_log", LOGGED, dict(switches, BLOCKCELL_LOG="1"))
    quiet = isolated.run("rewrite_log", ["log"], dict(switches, BLOCKCELL_LOG=None))
    graphs = isolated.run("rewrite_log", ["log"], dict(switches, BLOCKCELL_LOG="2"))
    wrong = isolated.run("rewrite_log", ["log"], dict(switches, BLOCKCELL_LOG="yes"))
    return dict(loud, quiet=quiet["log"], graphs=graphs["log"], wrong=wrong["log"])


def lines(runs, name):
    return isolated.value(runs[name])["lines"]


def test_a_line_for_each_place(runs):
    said = lines(runs, "log")
    sums = [line for line in said if "becomes BlockcellMatMulAddN" in line]
    assert len(sums) == isolated.value(runs["log"])["rewritten"]["BlockcellMatMulAddN"]
    assert any("(parts: 3)" in line for line in sums)
    assert all(line.startswith("blockcell: graph ") for line in said[:-1])
    assert "the pass took " in said[-1]


def test_reasons(runs):
    said = lines(runs, "log")
    alone = "(BiasAddGrad) is not rewritten: replacing it alone saves nothing"
    assert any(alone in line for line in said)
    rest = "becomes BlockcellMatMulSlice (parts: 1); the rest is not rewritten: "
    assert any(rest in line for line in said)


def test_a_session_that_is_left_alone(runs):
    (said,) = lines(runs, "off_for_a_session")
    assert "not rewritten: disabled by the configuration of the session" in said


def test_nothing_is_said_by_default(runs):
    assert lines(runs, "quiet") == []


def test_graphs_are_printed(runs):
    said = lines(runs, "graphs")
    assert sum("the graph before rewriting:" in line for line in said) == 1
    assert sum("the graph after rewriting:" in line for line in said) == 1


def test_a_value_that_is_not_known(runs):
    said = lines(runs, "wrong")
    assert [line for line in said if "BLOCKCELL_LOG" in line] == said[:1]
    assert "BLOCKCELL_LOG=yes is ignored. Valid values: 0 (log nothing, the default), 1" in said[0]


def test_off_for_a_session(runs):
    off, on = (isolated.value(runs[name + "_for_a_session"]) for name in ("off", "on"))
    assert not any(off["rewritten"].values())
    assert any(on["rewritten"].values())
    assert len(on["values"]) == len(off["values"])
