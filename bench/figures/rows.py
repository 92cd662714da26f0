"""Rows of all benchmarks in one form, read from the files that each of them writes."""

import json
from collections import OrderedDict
from typing import NamedTuple, Optional, Tuple

import numpy as np

from blockcell_tools.bench.report import disturbed, ratio_quartiles


class Row(NamedTuple):
    """How ours compares with a rival, in one case, on so many threads."""

    group: str
    """The heading that it stands under."""
    case: str
    shape: str
    rival: str
    threads: int
    theirs: float
    """Seconds, of the median round; or bytes."""
    ours: float
    ratio: float
    """How many times as fast ours is: the median of rounds. Or how much less it takes."""
    quartiles: Optional[Tuple[float, float]]
    disturbed: bool
    """Whether other processes left fewer cores than the row has threads."""
    batch: Optional[int] = None
    """If the case has one that is known."""


def of_training(content):
    """The rows of `examples/word_lm` and `examples/keras_classifier`."""
    for entry in content:
        stock, ours = entry["stock"], entry["ours"]
        if "graph" in entry:
            case, shape, rival = entry["graph"], "", "TensorFlow"
            theirs, ours = stock["rounds"], ours["rounds"]
        else:
            case = f"{entry['cell']}, {entry['data']}"
            shape = "x".join(str(entry[name]) for name in ("time", "batch", "units"))
            theirs, ours, rival = stock["seconds"], ours["seconds"], "Keras"
        yield _row(f"TensorFlow {entry['tensorflow']}", case, shape, rival, entry, theirs, ours)


def _row(group, case, shape, rival, entry, theirs, ours):
    """A row of the seconds of rounds. How busy the machine was is not known."""
    ratio, quartiles = ratio_quartiles(theirs, ours)
    medians = float(np.median(theirs)), float(np.median(ours))
    about = (group, case, shape, rival, entry["threads"])
    return Row(*about, *medians, ratio, quartiles, False, entry.get("batch"))


def of_turns(content):
    """The rows of `bench.inference`, `bench.predict` and `bench.cudnn`.

    Of the first, those against TensorFlow.
    """
    for row in content["rows"]:
        sizes = (row[name] for name in ("time", "batch", "input_size", "units") if name in row)
        if "form" in row:
            if row["rival"] != "tensorflow":
                continue
            group, case = f"TensorFlow {content['versions']['tensorflow']}", _network(row)
        elif "call" in row:
            group, case = row["call"], row["cell"]
        else:
            group = row["work"]
            case = f"{row['mode']} {row['layers']}x{row['directions']}"
        yield Row(
            *(group, case, "x".join(map(str, sizes)), _name(row["rival"]), row["threads"]),
            *(row["theirs"], row["ours"], row["ratio"], tuple(row["quartiles"])),
            disturbed(row["neighbours"], row["threads"]),
            row["batch"],
        )


def _network(row):
    return f"{row['cell'].upper()}, {row['form']}" if row["cell"] != "both" else row["form"]


def of_peers(content):
    """The rows of `bench.peers`."""
    for row in content["rows"]:
        for rival, ratio in row["ratios"].items():
            yield Row(
                *(f"{row['kind']}, {row['work']}", row["kind"], _shape(row), _name(rival)),
                *(row["threads"], row["seconds"][rival], row["seconds"]["ours"]),
                *(ratio, tuple(row["quartiles"][rival]), bool(row["disturbed"]), row["batch"]),
            )


def of_clients(content):
    """The rows of `bench.peers --clients`: what a call takes of the time of all, and p99."""
    for row in content["rows"]:
        ours = row["services"]["ours"]
        for rival, ratio in row["ratios"].items():
            theirs = row["services"][rival]
            about = (f"{row['clients']} clients", _shape(row), _name(rival), row["threads"])
            rates = [1.0 / one["calls_per_second"] for one in (theirs, ours)]
            quartiles = tuple(row["quartiles"][rival])
            busy = bool(row["disturbed"])
            group = f"{row['kind']}, 1 / calls per second"
            yield Row(group, *about, *rates, ratio, quartiles, busy)
            late = (theirs["p99"], ours["p99"])
            yield Row(f"{row['kind']}, p99", *about, *late, late[0] / late[1], None, busy)


def of_ops(content):
    """The rows of `blockcell bench`."""
    for row in content["rows"]:
        peephole = ", peephole" if row["use_peephole"] else ""
        half = ", half" if row["dtype"] == "half" else ""
        yield Row(
            *(row["op"] + half, row["dtype"] + peephole, _shape(row), "TensorFlow", row["threads"]),
            *(row["stock"], row["ours"], row["ratio"], tuple(row["quartiles"])),
            *(bool(row["disturbed"]), row["batch"]),
        )


def of_memory(content):
    """What `blockcell bench` says of the memory of a training step, in bytes."""
    peaks = {(one["side"], one["shape"], one["threads"]): one for one in content["memory"]}
    for (side, shape, threads), ours in peaks.items():
        if side != "ours":
            continue
        stock = peaks["stock", shape, threads]
        for name, words in (("peak", "resident"), ("allocated", "of TensorFlow's allocator")):
            if ours[name] and stock[name]:
                about = ("BlockLSTM+Grad", words, shape, "TensorFlow", threads)
                yield Row(*about, stock[name], ours[name], stock[name] / ours[name], None, False)


def _shape(row):
    """Time, batch, input and cell size, as on the command line."""
    sizes = [row[name] for name in ("time", "batch", "input_size", "cell_size")]
    if sizes[2] == sizes[3]:
        sizes.pop()
    return "x".join(str(size) for size in sizes if size is not None)


def _name(side):
    """What people call a side."""
    names = {"stock": "TensorFlow", "tensorflow": "TensorFlow", "keras": "Keras"}
    names.update(torch="PyTorch", onnxruntime="ONNX Runtime", openvino="OpenVINO")
    names.update(onnxruntime_int8="ONNX Runtime in int8", cells="cells of TensorFlow 1.15")
    return names[side]


_ABOUT = ("machine", "versions", "isa", "date", "command", "commit", "limits")


def read(path, reader):
    """The rows of a file, and what it says of the machine, of versions and of its command."""
    content = json.loads(path.read_text(encoding="utf-8"))
    about = {}
    if isinstance(content, dict):
        about = {name: content.get(name) for name in _ABOUT}
    return list(reader(content)), about


def pivot(rows):
    """Rows of the same case side by side: by group, rival, case and shape, one by threads."""
    found = OrderedDict()
    for row in rows:
        key = (row.group, row.rival, row.case, row.shape)
        found.setdefault(key, OrderedDict())[row.threads] = row
    return found
