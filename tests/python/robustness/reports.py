"""Calls that ended processes of TensorFlow, as advisories and issues have them.

Where a report has random numbers, these have ones: the shapes are what counts. Issues are those of
github.com/tensorflow/tensorflow. Some of the calls are right; TensorFlow died of these, too.
"""

from typing import Any, Dict, NamedTuple, Tuple

import numpy as np

from robustness.judging import Case

GATES = ("i", "cs", "f", "o", "ci", "co")
PEEPHOLES = ("wci", "wcf", "wco")


class Report(NamedTuple):
    """A call, and what has to come of it."""

    name: str
    """The advisory or the issue, and the op."""
    op: str
    inputs: Dict[str, Any]
    blame: Tuple[str, ...]
    """The tensors, one of which the message must name; empty for a call that is right."""
    attributes: Dict[str, Any]


def _report(name, op, shapes, blame, dtype=np.float32, seq_len_max=None, **attributes):
    inputs = {}
    if seq_len_max is not None:
        inputs["seq_len_max"] = np.asarray(seq_len_max, np.int64)
    inputs.update((tensor, np.ones(shape, dtype)) for tensor, shape in shapes.items())
    return Report(name, op, inputs, blame, attributes)


def _lstm_cell(x, state, w, b, peepholes, h_prev=None):
    shapes = {"x": x, "cs_prev": state, "h_prev": state if h_prev is None else h_prev, "w": w}
    return dict(shapes, **dict(zip(PEEPHOLES, peepholes)), b=b)


def _lstm_grad(steps, state, w, b, peepholes, x, **others):
    """Shapes of the gradient of a sequence."""
    shapes = _lstm_cell(x, state, w, b, peepholes)
    shapes.update(dict.fromkeys((*GATES, "h", "cs_grad", "h_grad"), steps))
    return dict(shapes, **others)


def _sequences(name, op, x, length, **others):
    """The gradient of a sequence of 2 rows, 4 inputs and 5 cells."""
    shapes = _lstm_grad((x[0], 2, 5), (2, 5), (9, 20), (20,), [(5,)] * 3, x, **others)
    return (name, op, shapes), {"seq_len_max": length, "use_peephole": True}


def _all():
    # CVE-2022-29200: no rank was checked. As in the advisory; then each tensor.
    advisory = _lstm_cell((28, 29), (28, 17), (46, 68), (68,), [(), (17,), (28, 17)])
    peephole = {"use_peephole": False, "cell_clip": 0.0}
    yield _report("CVE-2022-29200", "LSTMBlockCell", advisory, ("wci", "wco"), **peephole)
    right = _lstm_cell((28, 29), (28, 17), (46, 68), (68,), [(17,)] * 3)
    for tensor, shape in right.items():
        for wrong in ((), shape + (1,)):
            name = f"CVE-2022-29200 {tensor} of rank {len(wrong)}"
            shapes = dict(right, **{tensor: wrong})
            yield _report(name, "LSTMBlockCell", shapes, (tensor,), **peephole)

    # CVE-2022-35964: a segmentation fault where weights have too few columns.
    tiny = _lstm_grad((1, 1, 1), (1, 1), (1, 1), (1,), [(1,)] * 3, (1, 1, 1))
    off = {"use_peephole": False, "seq_len_max": 1}
    yield _report("CVE-2022-35964", "BlockLSTMGradV2", tiny, ("w",), **off)
    # 104830: the same; 104847: then gates of rank 2.
    yield _report("issue 104830", "BlockLSTMGrad", tiny, ("w",), **off)
    flat = dict(tiny, **dict.fromkeys((*GATES, "h", "cs_grad", "h_grad"), (1, 1)))
    yield _report("issue 104847", "BlockLSTMGrad", flat, ("w", "i"), **off)
    flat = dict(flat, w=(2, 4), b=(4,))
    yield _report("issue 104847 with right weights", "BlockLSTMGrad", flat, ("i",), **off)

    # CVE-2023-25658: memory beyond tensors was read where shapes disagree.
    gru = {"x": (4, 2), "h_prev": (4, 3), "w_ru": (5, 6), "w_c": (5, 3), "b_ru": (6,), "b_c": (3,)}
    grad = dict(gru, r=(4, 3), u=(4, 3), c=(4, 3), d_h=(4, 3))
    for tensor, shape in grad.items():
        wrong = (*shape[:-1], shape[-1] - 1)
        blame = (tensor, "w_ru") if tensor in ("x", "h_prev") else (tensor,)
        shapes = dict(grad, **{tensor: wrong})
        yield _report(f"CVE-2023-25658 {tensor}", "GRUBlockCellGrad", shapes, blame)
    cube = dict.fromkeys(("h_prev", "r", "u", "c", "d_h"), (4, 1, 1))
    cube.update(x=(4, 0, 1), w_ru=(1, 2, 1), w_c=(1, 1, 1), b_ru=(2,), b_c=(1,))
    order = [*grad]
    cube = {tensor: cube[tensor] for tensor in order}
    yield _report("CVE-2023-25658 of rank 3", "GRUBlockCellGrad", cube, ("x",))

    # 58261: a failed check for tensors of rank 3 and 6.
    shapes = {"x": (1, 0, 1), "h_prev": (1, 1, 1), "w_ru": (1, 2, 1, 1, 1, 1), "w_c": (1, 1, 1)}
    shapes.update(b_ru=(2,), b_c=(1,))
    yield _report("issue 58261", "GRUBlockCell", shapes, ("x",))

    # 58175 and 58176: seq_len_max is no scalar. Without elements, and of one element.
    shapes = _lstm_cell((1, 3, 15), (3, 0), (15, 0), (0,), [(0,)] * 3)
    for name, shape in (("58175", (13, 11, 0)), ("58176", (1,))):
        length = {"seq_len_max": np.ones(shape)}
        yield _report(f"issue {name}", "BlockLSTM", shapes, ("seq_len_max",), **length)
    # 58270: half, and no cells; a right call.
    shapes = _lstm_cell((2, 16), (2, 0), (16, 0), (0,), [(5,), (16,), (16,)])
    odd = {"forget_bias": 112.66590343649887, "cell_clip": 67.12389445926587}
    yield _report("issue 58270", "LSTMBlockCell", shapes, (), np.float16, **odd)
    # 66762: vectors in the place of matrices, and matrices in that of vectors.
    shapes = _lstm_cell((0,), (0,), (0,), (28, 29), [(0, 0), (28, 29), (28, 29)], h_prev=(0, 0))
    yield _report("issue 66762", "LSTMBlockCell", shapes, ("x",), cell_clip=0.0)
    # 66763: the same of the gradient.
    names = (*GATES, "cs_grad", "h_grad")
    shapes = _lstm_cell((17,), (28, 29), (28, 29), (28, 29), [(28, 29)] * 3)
    shapes.update(dict.fromkeys(names, (28, 29)))
    yield _report("issue 66763", "LSTMBlockCellGrad", shapes, ("x",), use_peephole=False)

    # 72362, 106407 and 124974: more steps than there are.
    shapes = _lstm_cell((2, 1, 2), (1, 2), (4, 8), (8,), [(2,)] * 3)
    for length in (5, -9):
        yield _report(
            f"issue 72362 with {length} steps",
            "BlockLSTMV2",
            shapes,
            ("seq_len_max",),
            np.float16,
            length,
        )
    for name, op in (("106407", "BlockLSTMGradV2"), ("124974", "BlockLSTMGrad")):
        for length in (3, -1):
            both, attributes = _sequences(
                f"issue {name} with {length} steps", op, (2, 2, 4), length
            )
            yield _report(*both, ("seq_len_max",), **attributes)
    shapes = _lstm_grad((2, 2, 0), (2, 0), (16, 0), (0,), [(0,)] * 3, (10, 2, 16))
    for name, op in (("90915", "BlockLSTMGrad"), ("90915", "BlockLSTMGradV2")):
        for use_peephole in (False, True):
            on = {"use_peephole": use_peephole, "seq_len_max": 10}
            title = f"issue {name} {op} {use_peephole}"
            yield _report(title, op, shapes, ("i",), np.float16, **on)

    # 112746 and pull request 126028: no rows, or another number of them; and fewer steps of a gate.
    both, attributes = _sequences("issue 112746", "BlockLSTMGrad", (3, 0, 4), 3)
    yield _report(*both, ("cs_prev",), **attributes)
    shapes = _lstm_cell((0,), (2, 5), (9, 20), (20,), [(5,)] * 3)
    shapes.update(dict.fromkeys(names, (2, 5)))
    on = {"use_peephole": True}
    yield _report("issue 112746 of a cell", "LSTMBlockCellGrad", shapes, ("x",), **on)
    for gate in (*GATES, "h"):
        both, attributes = _sequences(
            f"pull request 126028 {gate}", "BlockLSTMGrad", (3, 2, 4), 3, **{gate: (2, 2, 5)}
        )
        yield _report(*both, (gate,), **attributes)


def _of_cudnn():
    """Of cuDNN's ops, on a GPU."""
    attributes = {"rnn_mode": "lstm", "direction": "unidirectional", "input_mode": "linear_input"}
    zeros = {"input": (0, 2, 3), "input_h": (1, 2, 4), "input_c": (1, 2, 4), "params": (144,)}
    # CVE-2020-26270: a failed check where sequences have no steps.
    report = _report("CVE-2020-26270", "CudnnRNN", zeros, (), **attributes)
    yield report
    lengths = {"sequence_lengths": np.zeros(2, np.int32)}
    yield report._replace(
        name="CVE-2020-26270 V3", op="CudnnRNNV3", inputs=dict(report.inputs, **lengths)
    )
    # 12284: the same where the first layer has no input weights.
    attributes = {"rnn_mode": "gru", "input_mode": "skip_input", "num_params": 6}
    sizes = dict(num_layers=np.int32(1), num_units=np.int32(5), input_size=np.int32(5))
    params = np.ones(3 * 5 * 5 + 6 * 5, np.float32)
    inputs = dict(sizes, params=params)
    yield Report("issue 12284", "CudnnRNNParamsToCanonical", inputs, (), attributes)


def case(report):
    """The report as a case. The values of a right call are compared in other cases."""
    return Case(
        report.op,
        report.name,
        lambda: report.inputs,
        report.attributes,
        lambda _: "this call is wrong" if report.blame else None,
        lambda *_: None,
        report.blame,
    )


def cases(op):
    """The cases of an op."""
    return [case(report) for report in REPORTS.values() if report.op == op]


REPORTS = {report.name: report for report in (*_all(), *_of_cudnn())}
"""All of them, by name."""
