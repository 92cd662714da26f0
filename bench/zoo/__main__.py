"""The command line of the comparison of published architectures."""

from bench.comparison import NOTE, Comparison, new_parser
from bench.zoo import nets


def of_ours(rewritten):
    """What the library runs of a graph, in words."""
    named = sorted(rewritten.items(), key=lambda pair: pair[0].replace("Blockcell", ""))
    return ", ".join(f"{n} {op}".replace("Blockcell", "") for op, n in named) or "nothing"


COMPARISON = Comparison(
    program="bench.zoo",
    title="Published architectures in TensorFlow {tensorflow}",
    file="zoo-{tensorflow}",
    columns=("architecture", "work", "on the kernels", "size"),
    cells=lambda net, row: [net.words, net.work, of_ours(row["rewritten"]), net.shape],
    # Gradients of an attention's bias are the small rest of large parts: those of TensorFlow 1.15
    # and 2.21 differ by 4e-5 there.
    largest_error=2e-4,
    note=f"On the kernels: nodes of our graph that the library runs. {NOTE.format('call')}",
)


def main():
    """Runs the comparison."""
    parser = new_parser(COMPARISON.program, __doc__, seconds=3.0)
    parser.set_defaults(threads=[1])
    names = [net.name for net in nets.NETS]
    parser.add_argument("--nets", nargs="+", choices=names, default=names, metavar="NAME")
    arguments = parser.parse_args()
    wanted = [net for net in nets.NETS if net.name in arguments.nets]
    COMPARISON.run(arguments, wanted, ["tensorflow"])


if __name__ == "__main__":
    main()
