"""The process of one side that several clients call, `python -m bench.peers.client_worker SIDE`."""

import blockcell
from bench.peers.clients import Calls
from bench.peers.onnx_runtime import OnnxRuntime, model
from blockcell_tools.bench.client_side import Clients, OpSide
from blockcell_tools.bench.clients import AnswerError
from blockcell_tools.bench.graphs import LabelError
from blockcell_tools.bench.side import serve
from blockcell_tools.bench.worker import answer


class OnnxRuntimeClients(Clients, OnnxRuntime):
    """Clients of one session of ONNX Runtime's."""

    def callers(self, net, arrays):
        """A function for each client."""
        OnnxRuntime.prepare(self, net.net, arrays)
        return [lambda x: self._session.run(["h"], {"x": x})[0][:, 0]] * net.clients


class OpenVino(Clients):
    """Clients of one compiled model of OpenVINO's, with a request each."""

    def __init__(self, name, job):
        """Imports the runtime."""
        import openvino

        del name
        self._runtime, self._core = openvino, openvino.Core()
        self._threads = job["threads"]

    def about(self):
        """Versions."""
        return {"versions": {"openvino": self._runtime.__version__.split("-")[0]}}

    def callers(self, net, arrays):
        """A function for each client."""
        content = self._core.read_model(model(net.net, arrays).SerializeToString())
        properties = {
            # The processor's bfloat16, which it would take otherwise, is another computation.
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": self._threads,
            "PERFORMANCE_HINT": "THROUGHPUT" if net.clients > 1 else "LATENCY",
            "PERFORMANCE_HINT_NUM_REQUESTS": net.clients,
        }
        compiled = self._core.compile_model(content, "CPU", properties)
        requests = [compiled.create_infer_request() for _ in range(net.clients)]
        return [lambda x, one=one: one.infer({"x": x})["h"][:, 0] for one in requests]


SIDES = {"ours": OpSide, "stock": OpSide, "onnxruntime": OnnxRuntimeClients, "openvino": OpenVino}
"""What runs each side."""

if __name__ == "__main__":
    problems = (AnswerError, LabelError, blockcell.LibraryError)
    answer(serve(SIDES, Calls), problems)
