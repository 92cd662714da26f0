"""The process of one side whose graph several clients call: see `blockcell_tools.bench.side`."""

import blockcell
from blockcell_tools.bench.client_rows import Calls
from blockcell_tools.bench.clients import AnswerError, Client
from blockcell_tools.bench.graphs import SIDES, LabelError, Served
from blockcell_tools.bench.side import serve
from blockcell_tools.bench.worker import answer, start


class Clients:
    """What sides have in common: clients with an input each, and what they get alone."""

    is_exact = False
    """Whether an answer must be the same bit for bit, however many others call."""

    def prepare(self, net, arrays):
        """Makes the clients, by `callers` of the side."""
        inputs = arrays["clients"]
        calls = [
            (lambda caller=caller, one=one: caller(one))
            for caller, one in zip(self.callers(net, arrays), inputs)
        ]
        largest_error = 0.0 if self.is_exact else net.largest_error
        self.clients = [Client(call, call(), largest_error) for call in calls]

    def run(self):
        """A call of the first client."""
        self.clients[0].call()

    def results(self):
        """Each client's answer."""
        return {f"client {at}": client.answer for at, client in enumerate(self.clients)}


class OpSide(Clients):
    """An op of TensorFlow's, by the stock kernel or by ours."""

    def __init__(self, name, job):
        """Starts TensorFlow, and loads the library."""
        # Ours are bit-identical for any number of threads, and so for any number of callers.
        self.is_exact = name == "ours"
        self._name = name
        self._sides, self._about = start(job)
        self._served = None
        self._checked = set()

    def about(self):
        """Versions, instruction set, and the kernels of the library."""
        return self._about

    def callers(self, net, arrays):
        """A function for each client, of one session."""
        op, attributes = net.op, net.attributes
        for kernel in op.kernels if op else ():
            if kernel.name not in self._checked and kernel.function is None:
                self._sides.check_labels(kernel)
            self._checked.add(kernel.name)
        if self._served:
            self._served.__exit__()
        values = net.values(arrays)
        self._served = Served(self._sides, op, values, attributes, self._name)
        return [self._served.caller(net.caller) for _ in range(net.clients)]


if __name__ == "__main__":
    problems = (AnswerError, LabelError, blockcell.LibraryError)
    answer(serve(dict.fromkeys(SIDES, OpSide), Calls), problems)
