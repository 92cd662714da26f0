"""Runs an op on its stock kernel or on ours; conftest.py has loaded the library beside those."""

from blockcell_tools.labelled_calls import OURS, STOCK_KERNEL, call, labelled, run

__all__ = ["OURS", "STOCK_KERNEL", "call", "labelled", "run"]
