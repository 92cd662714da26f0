"""What sides of comparisons that run TensorFlow share: see `blockcell_tools.bench.side`."""

import os
import platform

import blockcell


class TensorFlowSide:
    """TensorFlow on as many threads as the job says."""

    DEVICES = {"GPU": 0}
    """How many devices a session has, by kind; all of those that are not named."""

    def __init__(self, name, job):
        """Imports it."""
        import tensorflow as tf

        del name
        self._tf = tf
        self._threads = job["threads"]
        self._config = tf.compat.v1.ConfigProto(
            device_count=self.DEVICES,
            intra_op_parallelism_threads=self._threads,
            inter_op_parallelism_threads=self._threads,
        )
        self._session = None

    def about(self):
        """Versions."""
        versions = {"tensorflow": self._tf.__version__, "python": platform.python_version()}
        return {"versions": versions}

    def _open(self, graph=None):
        """Opens a session for a graph, and closes the one before."""
        if self._session:
            self._session.close()
        self._session = self._tf.compat.v1.Session(graph=graph, config=self._config)

    def _set_threads(self):
        """Limits the threads of what runs without a session."""
        self._tf.config.threading.set_intra_op_parallelism_threads(self._threads)
        self._tf.config.threading.set_inter_op_parallelism_threads(self._threads)


class WithLibrary:
    """Before a `TensorFlowSide` among the bases: the same with the library, which takes over."""

    def __init__(self, name, job):
        """Loads the library."""
        # Workers run without take-over, for others to compare kernels. It is what switches the
        # graph passes off, too.
        os.environ.pop("BLOCKCELL_OVERRIDE", None)
        super().__init__(name, job)
        self._module = blockcell.load(job["library"])

    def _info(self):
        return blockcell.info()

    def about(self):
        """Versions and instruction set."""
        info = self._info()
        about = super().about()
        versions = dict(about["versions"], blockcell=info["version"])
        return dict(about, versions=versions, isa=info["isa"])
