"""The programs of `examples/` that show how to deploy the library."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
import tensorflow as tf

import blockcell
from helpers.command_line import ROOT

TF1 = tf.__version__.startswith("1.")
SERVER = ROOT / "examples" / "server"
SECONDS = 240


def environment(**variables):
    variables.update(PYTHONPATH=str(ROOT / "python"), TF_CPP_MIN_LOG_LEVEL="2")
    variables.update(BLOCKCELL_LIBRARY=str(blockcell.find_library()))
    there = {name: value for name, value in os.environ.items() if "BLOCKCELL" not in name}
    return dict(there, **variables)


def run(*words, code=0):
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
    )
    assert done.returncode == code, done.stdout.decode()
    return done.stdout.decode()


# The server.


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with models, and examples of what they compute without the library."""
    for package in ("fastapi", "gunicorn", "keras"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("models")
    run(SERVER / "make_models.py", folder)
    return folder


@contextlib.contextmanager
def server(models, preload):
    """The address of a running server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "gunicorn", "--config", str(SERVER / "gunicorn.conf.py")]
    process = subprocess.Popen(
        [*command, "--chdir", str(SERVER)],
        env=environment(MODELS=str(models), BIND=address, PRELOAD=preload, WORKERS="2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + SECONDS
        while True:
            assert process.poll() is None, process.stdout.read().decode()
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                assert json.loads(get(f"http://{address}/models")) == ["gru", "lstm"]
                break
            assert time.monotonic() < end
            time.sleep(0.2)
        yield f"http://{address}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def get(address, data=None):
    with urllib.request.urlopen(address, data, timeout=60) as answer:
        return answer.read()


@pytest.mark.parametrize("preload", ["1", "0"], ids=["loaded before the fork", "and after it"])
def test_server_answers_all_clients(models, preload):
    with server(models, preload) as address:
        words = (SERVER / "load_test.py", address, models / "examples.npz")
        printed = run(*words, "--clients", "3", "--seconds", "0.5")
        rates = r"[\d,]+ calls/s, p50 \S+ ms, p99 \S+ ms"
        assert re.match(r"3 clients of 2 models: \d+ answers, all right; " + rates, printed)
        ran = json.loads(get(address + "/info"))["runs"]
        assert ran.get("BlockcellKerasGRU", 0) + ran.get("BlockcellKerasLSTM", 0) > 0, ran
        if preload == "1":
            check_refusals(models, address)


def check_refusals(models, address):
    """What the load test and the server say of what is wrong."""
    with np.load(models / "examples.npz") as examples:
        changed = {name: array.copy() for name, array in examples.items()}
    changed["lstm outputs"] += 1e-3
    np.savez(models / "changed.npz", **changed)
    words = (SERVER / "load_test.py", address, models / "changed.npz", "--seconds", "0.1")
    assert re.match(r"wrong: client \d of 4: an answer differs", run(*words, code=1))
    for path, code in (("/models/gru", 400), ("/models/other", 404)):
        with pytest.raises(urllib.error.HTTPError) as raised:
            get(address + path, b"no array")
        assert raised.value.code == code


# Images.

DOCKERFILES = sorted((ROOT / "examples").glob("*/Dockerfile"))
INSTRUCTIONS = {"FROM", "COPY", "RUN", "WORKDIR", "USER", "ENV", "EXPOSE", "CMD"}


def instructions(file):
    """The instructions of a Dockerfile, and their words."""
    text = re.sub(r"^#.*\n", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            yield line.split(None, 1)


@pytest.mark.once
@pytest.mark.parametrize("file", DOCKERFILES, ids=lambda file: file.parent.name)
def test_image_has_what_it_names(file):
    found = list(instructions(file))
    assert found[0][0] == "FROM" and found[-1][0] == "CMD"
    assert {name for name, _ in found} <= INSTRUCTIONS
    allowed = (file.parent / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = [line[1:] for line in allowed if line.startswith("!")]
    copied = {}
    for name, words in found:
        if name == "COPY":
            *sources, target = words.split()
            assert target.startswith("/") and target.endswith("/")
            copied.update((source.rsplit("/", 1)[-1], source) for source in sources)
    for source in copied.values():
        if source.startswith("dist/"):  # Of `make wheel`, as the comment says.
            assert source == "dist/blockcell-*.whl" and "make wheel" in file.read_text()
            continue
        assert (ROOT / source).is_file(), source
        assert any(source == one or source.startswith(one + "/") for one in allowed), source
    assert "dist/*.whl" in allowed
    for word in json.loads(found[-1][1]):  # Programs and files that the image runs.
        if re.search(r"\.(py|meta)$", word):
            assert word in copied, word


@pytest.mark.skipif(not TF1, reason="the program is for TensorFlow 1.15")
def test_library_alone_in_tensorflow_1(tmp_path):
    program = ROOT / "examples" / "tensorflow-1.15" / "infer.py"
    graph = ROOT / "examples" / "char_lm" / "graphs" / "basic_lstm_cell.meta"
    printed = run(program, blockcell.find_library(), graph)
    assert "kernels that have run: {'BlockcellLSTMLayer': " in printed
