"""Serves SavedModels over HTTP, with FastAPI. `gunicorn.conf.py` says how it is started.

POST /models/NAME takes an array as `numpy.save` writes it, and returns the model's output in the
same form. GET /models lists the models. GET /info tells which kernels have run in this process.
"""

import contextlib
import io
import os
from pathlib import Path

import anyio
import numpy as np
import tensorflow as tf
from fastapi import FastAPI, HTTPException, Request, Response

import blockcell

# Runs no op, so that gunicorn may fork after it. Whatever starts TensorFlow's threads, such as a
# model, comes after the fork.
blockcell.load()

THREADS = int(os.environ.get("THREADS", "1"))
"""Threads of TensorFlow's in this process, and requests that it computes at once."""

NPY = "application/octet-stream"


class Model:
    """A SavedModel with one input and one output."""

    def __init__(self, folder):
        """Loads it, and calls it once: the first call prepares the graph."""
        self._loaded = tf.saved_model.load(folder)  # Keeps the signature's variables.
        self._call = self._loaded.signatures["serving_default"]
        ((self._name, spec),) = self._call.structured_input_signature[1].items()
        self._dtype = spec.dtype.as_numpy_dtype
        self(np.zeros([size or 1 for size in spec.shape.as_list()], self._dtype))

    def __call__(self, array):
        """The output for an input."""
        given = tf.constant(array.astype(self._dtype, casting="same_kind", copy=False))
        (output,) = self._call(**{self._name: given}).values()
        return output.numpy()


@contextlib.asynccontextmanager
async def lifespan(app):
    """Runs in each worker when it starts, after the fork."""
    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    folders = sorted(Path(os.environ["MODELS"]).glob("*/saved_model.pb"))
    app.state.models = {file.parent.name: Model(str(file.parent)) for file in folders}
    # More at once would only wait for each other; the others wait in a queue.
    app.state.limiter = anyio.CapacityLimiter(THREADS)
    yield


app = FastAPI(lifespan=lifespan)


@app.post("/models/{name}")
async def predict(name: str, request: Request):
    """Calls a model."""
    if name not in app.state.models:
        raise HTTPException(404, f"there is no model {name}")
    body = await request.body()
    try:
        answer = await anyio.to_thread.run_sync(
            answer_of, app.state.models[name], body, limiter=app.state.limiter
        )
    except (ValueError, TypeError, tf.errors.InvalidArgumentError) as error:
        raise HTTPException(400, str(error)) from error
    return Response(answer, media_type=NPY)


def answer_of(model, body):
    """The answer to a request's body. TensorFlow lets other threads of Python run meanwhile."""
    array = np.lib.format.read_array(io.BytesIO(body), allow_pickle=False)
    answer = io.BytesIO()
    np.save(answer, model(array))
    return answer.getvalue()


@app.get("/models")
async def models():
    """The names of the models."""
    return sorted(app.state.models)


@app.get("/info")
async def info():
    """This process, and how often which kernel has computed in it."""
    runs = blockcell.info()["runs"]
    return {"process": os.getpid(), "runs": {op: count for op, count in runs.items() if count}}
