"""The command line of the comparison of inference."""

import importlib.util

from bench.comparison import NOTE, Comparison, new_parser
from bench.inference import nets

RIVALS = ["layer", "unrewritten", "tensorflow"]
ALLOWED = 1.15
"""How many times as long as layers by hand a loop may take that was rewritten."""


def cells(net, row):
    """What the tables show of a net."""
    rewritten = ", ".join(f"{n} {op}" for op, n in row["rewritten"].items())
    rewritten = rewritten.replace("Blockcell", "")
    return [net.cell, net.form, rewritten, net.shape]


COMPARISON = Comparison(
    program="bench.inference",
    title="Frozen graphs in TensorFlow {tensorflow}",
    file="inference-{tensorflow}",
    columns=("cell", "form", "rewritten", "shape"),
    cells=cells,
    note="Rewritten: nodes that the library put into our graph. Shapes are time, batch, input size "
    f"and units. {NOTE.format('call')}",
    # The layers of a SavedModel are not written by hand.
    has=lambda net, rival: (net.form, rival) != (nets.KERAS2, "layer"),
    is_slow=lambda row: row["rival"] == "layer" and row["ratio"] < 1 / ALLOWED,
)


def main():
    """Runs the comparison."""
    parser = new_parser(COMPARISON.program, __doc__, seconds=4.0)
    add = parser.add_argument
    forms = list(dict.fromkeys(net.form for net in nets.NETS))
    # TensorFlow 1.15 has its Keras inside, and cannot load what Keras 3 exports.
    usual = [form for form in forms if form != nets.KERAS3 or importlib.util.find_spec("keras")]
    kinds = ["lstm", "gru", "both"]
    add("--cells", nargs="+", choices=kinds, default=kinds)
    add("--forms", nargs="+", choices=forms, default=usual, metavar="FORM", help=f"of {forms}")
    add("--rivals", nargs="+", choices=RIVALS, default=RIVALS, help="default: all")
    arguments = parser.parse_args()
    wanted = [
        net for net in nets.NETS if net.cell in arguments.cells and net.form in arguments.forms
    ]
    rows = COMPARISON.run(arguments, wanted, arguments.rivals)
    longest = max((1 / row["ratio"] for row in rows if row["rival"] == "layer"), default=None)
    if longest:
        print(
            f"Ours takes up to {longest:.2f} times as long as layers by hand (allowed: {ALLOWED})."
        )


if __name__ == "__main__":
    main()
