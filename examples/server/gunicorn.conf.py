"""How gunicorn starts `app.py`: how many processes, and how many threads each has.

In the environment, MODELS is the folder of the SavedModels, WORKERS the number of processes, and
PRELOAD=0 lets each process import everything itself.
"""

import os

cores = len(os.sched_getaffinity(0))

# Each worker has a copy of the models. Python runs in one thread of a worker at a time, so
# several workers answer more short calls than one does.
workers = int(os.environ.get("WORKERS", min(cores, 2)))

# TensorFlow and the library are imported once, before the fork, and workers share that memory.
preload_app = os.environ.get("PRELOAD", "1") != "0"

# All workers together have as many threads as there are cores. NumPy's products need none.
raw_env = [f"THREADS={max(1, cores // workers)}", "OPENBLAS_NUM_THREADS=1"]

wsgi_app = "app:app"
worker_class = "asgi"
bind = os.environ.get("BIND", "127.0.0.1:8000")
timeout = 120  # Loading the models counts.
control_socket_disable = True  # A file in the home folder, which two servers would share.
