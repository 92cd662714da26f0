"""The sides of the comparison: see `blockcell_tools.bench.side`."""

import re
from collections import Counter

import blockcell
from bench.zoo.nets import Net
from blockcell_tools.bench.graphs import library_info
from blockcell_tools.bench.side import serve
from blockcell_tools.bench.tensorflow_side import TensorFlowSide, WithLibrary
from blockcell_tools.bench.worker import answer


class TensorFlow(TensorFlowSide):
    """The graph without the library."""

    def prepare(self, net, arrays):
        """Makes the graph, and runs it once."""
        v1 = self._tf.compat.v1
        definition = v1.MetaGraphDef.FromString(net.file.read_bytes())
        with self._tf.Graph().as_default() as graph:
            v1.train.import_meta_graph(definition)
        self._open(graph)
        self._session.run("initialize")
        results = graph.get_operation_by_name("results").outputs
        self.run = self._session.make_callable(results)
        self._first_run(results)

    def _first_run(self, results):
        self.run()

    def results(self):
        """The results by their place."""
        return {str(k): value for k, value in enumerate(self.run())}


class Ours(WithLibrary, TensorFlow):
    """The graph with the library."""

    def __init__(self, name, job):
        """Loads the library."""
        super().__init__(name, job)
        self._rewritten = {}

    def _info(self):
        # Not `blockcell.info()`: the first session of a process sets how many threads there are.
        return library_info(self._tf, self._module, self._config)

    def about(self):
        """Versions, instruction set, and which ops of the graph are the library's, by op."""
        return dict(super().about(), rewritten=self._rewritten)

    def _first_run(self, results):
        v1 = self._tf.compat.v1
        metadata = v1.RunMetadata()
        options = v1.RunOptions(output_partition_graphs=True)
        self._session.run(results, options=options, run_metadata=metadata)
        replaced = set(self._info()["taken_over"])
        ops = Counter(node.op for graph in metadata.partition_graphs for node in graph.node)
        self._rewritten = {
            op: count for op, count in ops.items() if op in replaced or re.match("Blockcell", op)
        }


SIDES = {"ours": Ours, "tensorflow": TensorFlow}

if __name__ == "__main__":
    answer(serve(SIDES, Net), blockcell.LibraryError)
