"""Several clients at once: what `blockcell bench --clients` measures, and what is checked."""

import json

import numpy as np
import pytest

from blockcell_tools.bench import clients
from helpers.command_line import documented, run

pytest.importorskip("click")


def test_bench_of_clients(tmp_path):
    words = ["--clients", "3", "--ops", "BlockLSTM,LSTMBlockCell", "--inter-op", "-1"]
    words += ["--sequences", "3x2x5", "--shapes", "3x4x5", "--threads", 2, "--seconds", "0.01"]
    words += ["--dtypes", "half", "--peephole", "on"]
    words += ["--output", tmp_path / "results", "--report", tmp_path / "report.json"]
    printed = run("bench", *words)[0]
    assert "LSTMBlockCell half" in printed and "Several clients at once" in printed
    answer = json.loads((tmp_path / "report.json").read_text())
    assert set(answer) == documented("bench --clients")
    found = [(row["op"], row["caller"], row["clients"]) for row in answer["rows"]]
    callers = ("Session.run", "make_callable")
    ops = ("BlockLSTM", "LSTMBlockCell")
    assert found == [(op, caller, 3) for op in ops for caller in callers]
    for row in answer["rows"]:
        assert row["error"] < 3e-2 and row["quartiles"][0] <= row["ratio"] <= row["quartiles"][1]
        assert set(row["services"]) == {"stock", "ours", "nothing"}
        for one in row["services"].values():
            assert one["calls"] >= row["clients"] and 0 < one["p50"] <= one["p99"]
    written = sorted(path.suffix for path in (tmp_path / "results").iterdir())
    assert written == [".json", ".jsonl", ".md"]


def of_three_clients(change):
    """Clients of whom the second gets another array, which this makes of the right one."""
    right = np.arange(6.0)
    answers = [right, change(right.copy()), right]
    return [clients.Client(lambda one=one: one, right, 1e-6) for one in answers]


def test_each_answer_of_clients_is_checked():
    found = clients.load(of_three_clients(lambda same: same * (1 + 1e-8)), 0.01, 0.0)
    assert len(found["latencies"]) >= 3 and found["rate"] > 0
    for change in (lambda array: array + 1e-4, lambda array: array * np.nan, lambda _: np.zeros(5)):
        with pytest.raises(clients.AnswerError, match="client 1 of 3: "):
            clients.load(of_three_clients(change), 0.01, 0.0)


def test_one_wrong_answer_of_many_is_found():
    right, count = np.arange(6.0), [0]

    def call():
        count[0] += 1
        return right if count[0] != 50 else right[::-1]

    with pytest.raises(clients.AnswerError, match="differs"):
        clients.load([clients.Client(call, right, 0.0)], 0.2, 0.0)
