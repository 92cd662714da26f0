"""Calls the server from several clients at once, and checks every answer.

    python examples/server/load_test.py http://127.0.0.1:8000 FOLDER/examples.npz --clients 4

The examples are those of `make_models.py`. Each client keeps a connection, has an input of its own,
and calls one of the models. It needs no TensorFlow. The exit code is 1 if an answer is wrong.
"""

import argparse
import http.client
import io
import sys
import urllib.parse

import numpy as np

from blockcell_tools.bench.clients import AnswerError, Client, load, service

LARGEST_ERROR = 1e-5
"""How far an answer may be from that of TensorFlow without blockcell, of its largest element."""


def caller(address, name, array):
    """A function that sends an array to a model, and returns the answer."""
    connection = http.client.HTTPConnection(address, timeout=60)
    body = io.BytesIO()
    np.save(body, array)

    def call():
        connection.request("POST", f"/models/{name}", body.getvalue())
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise AnswerError(f"{name}: {response.status} {content.decode()}")
        return np.load(io.BytesIO(content), allow_pickle=False)

    return call


def main():
    """Runs the clients, prints what they got."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server", help="such as http://127.0.0.1:8000")
    parser.add_argument("examples", help="the file that make_models.py has written")
    parser.add_argument("--clients", type=int, default=4, help="how many (default: 4)")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long (default: 5)")
    arguments = parser.parse_args()
    address = urllib.parse.urlsplit(arguments.server).netloc
    with np.load(arguments.examples) as examples:
        inputs, outputs = (
            {key.split()[0]: examples[key] for key in sorted(examples) if key.endswith(kind)}
            for kind in (" inputs", " outputs")
        )
    names = list(inputs)
    clients = []
    for number in range(arguments.clients):
        name = names[number % len(names)]
        example = number // len(names) % len(inputs[name])
        call = caller(address, name, inputs[name][example])
        clients.append(Client(call, outputs[name][example], LARGEST_ERROR))
    try:
        got = service([load(clients, arguments.seconds, warm=arguments.seconds / 10)])
    except AnswerError as error:
        sys.exit(f"wrong: {error}")
    rate, p50, p99 = got.cells()
    print(
        f"{arguments.clients} clients of {len(names)} models: {got.calls} answers, all right; "
        f"{rate} calls/s, p50 {p50} ms, p99 {p99} ms"
    )


if __name__ == "__main__":
    main()
