"""Calls that are known to end processes of TensorFlow, for `test_reported_crashes`."""

import functools

import tensorflow as tf

import blockcell
from robustness import calling, judging
from robustness.reports import REPORTS, case

MODES = ("session",) if tf.__version__.startswith("1.") else ("session", "eager", "function")


def prepare():
    blockcell.load()


def _check(name):
    report = REPORTS[name]
    for mode in MODES:
        answer = calling.answer(mode, report.op, report.inputs, report.attributes)
        word, text = judging.verdict(case(report), report.inputs, answer)
        assert word == judging.HANDLED, f"{mode}: {word}: {text}"


for _name in REPORTS:
    globals()[_name] = functools.partial(_check, _name)
