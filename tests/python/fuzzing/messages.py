"""What the processes of a run say to each other: pickles with their length before them."""

import collections
import os
import pickle
import select
import struct
import time

Setting = collections.namedtuple("Setting", "optimized threads noise draw timeout")
Setting.__doc__ = """How a program is run.

Attributes:
  optimized: Whether TensorFlow's own optimizers are on.
  threads: Of the session's own pool; None for the pool of the process.
  noise: The largest relative change of the random values.
  draw: Which of many such changes.
  timeout: Milliseconds for each call of the session.
"""


def send(stream, message):
    data = pickle.dumps(message, protocol=4)
    rest = memoryview(struct.pack("<Q", len(data)) + data)
    while rest:
        rest = rest[stream.write(rest) :]
    stream.flush()


def receive(stream, seconds=None):
    """The next message; None at the end of the stream.

    Raises:
      TimeoutError: It takes longer than so many seconds.
    """
    end = None if seconds is None else time.monotonic() + seconds
    header = _read(stream, 8, end)
    if header is None:
        return None
    data = _read(stream, struct.unpack("<Q", header)[0], end)
    return None if data is None else pickle.loads(data)


def _read(stream, count, end):
    data = b""
    while len(data) < count:
        left = None if end is None else max(0, end - time.monotonic())
        if not select.select([stream], [], [], left)[0]:
            raise TimeoutError
        part = os.read(stream.fileno(), count - len(data))
        if not part:
            return None
        data += part
    return data
