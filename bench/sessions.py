"""A side of a comparison that runs a graph of TensorFlow."""


class GraphSide:
    """One that runs in a session of as many threads as the job says."""

    def __init__(self, name, job):
        """Starts TensorFlow."""
        import tensorflow as tf

        del name
        self._tf = tf
        self._config = tf.compat.v1.ConfigProto(
            device_count={"GPU": 0},
            intra_op_parallelism_threads=job["threads"],
            inter_op_parallelism_threads=job["threads"],
        )
        self._session = None

    def _open(self, graph):
        """Opens a session for a graph, and closes the one before."""
        if self._session:
            self._session.close()
        self._session = self._tf.compat.v1.Session(graph=graph, config=self._config)
