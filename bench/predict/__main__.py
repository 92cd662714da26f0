"""The command line of the comparison of Keras's `predict`."""

from bench.comparison import NOTE, Comparison, new_parser
from bench.predict import nets

COMPARISON = Comparison(
    program="bench.predict",
    title="Keras {keras} in TensorFlow {tensorflow}",
    file="predict-{tensorflow}",
    columns=("layer", "call", "shape"),
    cells=lambda net, row: [net.cell, net.call, net.shape],
    note="Shapes are time, batch, input size and units. A call of predict has "
    f"{nets.BATCHES} batches. {NOTE.format('batch')}",
)


def main():
    """Runs the comparison."""
    arguments = new_parser(COMPARISON.program, __doc__, seconds=2.0).parse_args()
    COMPARISON.run(arguments, nets.NETS, ["keras"])


if __name__ == "__main__":
    main()
