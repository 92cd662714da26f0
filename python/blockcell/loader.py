"""Finds, checks and loads the library built for the running TensorFlow.

A library serves one minor release of TensorFlow, because TensorFlow's C++ interface changes with
each. Builds therefore lie in folders named after it: `tf-2.21/libblockcell.so`.
"""

import json
import os
import re
import sys
import threading
from pathlib import Path

LIBRARY = "libblockcell.so"
ENVIRONMENT = "BLOCKCELL_LIBRARY"

_PACKAGE = Path(__file__).resolve().parent
_lock = threading.RLock()
_loaded = {}  # "path" and "module", once the library is loaded


class LibraryError(ImportError):
    """A library was found, but it cannot serve the running TensorFlow."""


class LibraryNotFoundError(LibraryError):
    """There is no library for the running TensorFlow."""


def load(path=None, replace_gradients=True):
    """Loads the library built for the running TensorFlow.

    Drops the kernels that eager mode has cached, so that ops and `tf.function`s which ran before
    use the library's too. A session keeps the kernels of the graphs it has run. Loading runs no op
    and starts no thread pool, so TensorFlow can still be configured afterwards.

    Registers Python gradients of the library's own ops and of the block RNN ops, first and second
    order: TensorFlow has some of the former and none of the latter. **Those that TensorFlow has are
    replaced**, because they are wrong or incomplete:

    * The one of `BlockLSTMV2` is wrong: it calls `BlockLSTMGrad`, which takes the columns of the
      weights to be in the order of `BlockLSTM`. Ours calls `BlockLSTMGradV2`.
    * The one of `BlockLSTM`, and in TensorFlow 1.15 those of `GRUBlockCell` and `LSTMBlockCell`
      from tf.contrib, drop gradients that arrive at other outputs than h (and cs). In ours they
      count, too.

    Gradients taken from then on use them, also of ops and functions that ran before. A gradient
    that is part of a graph already, or of a `tf.function` that was traced with a tape inside or
    differentiated before, stays as it is: load the library first.

    Calling it again is harmless and returns the same module.

    Args:
      path: The library's file. By default the first of these that exists: the file named by the
        environment variable `BLOCKCELL_LIBRARY`, `lib/tf-<minor>/libblockcell.so` in this package,
        `build/tf-<minor>/libblockcell.so` in the source tree this package is used from.
      replace_gradients: Whether to replace the gradients of block RNN ops that are registered
        already. If False, these stay, and their ops get no second order gradients, which would be
        wrong where the first order drops something. What one call has replaced, no other puts back.

    Returns:
      The module of the library's own ops, as from `tf.load_op_library`.

    Raises:
      LibraryNotFoundError: There is no such file. The message lists what there is, and the command
        that builds what is missing.
      LibraryError: The file is no library for the running TensorFlow, or another one has been
        loaded into this process.
      RuntimeError: Gradients have to be replaced, and this TensorFlow keeps them in an unknown way.
    """
    with _lock:
        if not _loaded:
            library = find_library(path)
            _loaded.update(module=_load_into_tensorflow(library), path=library)
        elif path is not None and Path(path).resolve() != _loaded["path"]:
            raise LibraryError(
                "blockcell: cannot load {}: this process has loaded {}, and one process can load "
                "only one library".format(path, _loaded["path"])
            )
        from blockcell.gradients import registry

        registry.register(_loaded["module"], replace_gradients)
        return _loaded["module"]


def info():
    """Returns what the library says of itself, and calls `load()` first if that was not done.

    Runs the op `BlockcellInfo`, and with it TensorFlow's runtime: configure TensorFlow before.

    Returns:
      A dictionary with the keys `version`, `tensorflow_built_for`, `tensorflow_running`, `isa`
      (`"avx512"`, `"avx2"` or `"portable"`), `ops` (names of the ops that have a kernel),
      `taken_over` (those whose stock kernel is replaced), `override` (`"priority"`,
      `"graph_pass"` or `"off"`), `rewrite` (whether graphs are rewritten, `"on"` or `"off"`) and
      `rewritten` (a dictionary: how many nodes of which op that put into graphs of this process).

    Raises:
      LibraryError: As `load`; or the library was built for another TensorFlow, and loading it did
        not show.
    """
    with _lock:
        module = _loaded.get("module") or load()
    answer = json.loads(_run_info(module).decode())
    built_for, running = answer["tensorflow_built_for"], answer["tensorflow_running"]
    if _minor(built_for) != _minor(running):
        raise LibraryError(
            _explain(
                "{} was built for TensorFlow {}, but {} is running".format(
                    _loaded["path"], built_for, running
                )
            )
        )
    return answer


def _run_info(module):
    """Runs `BlockcellInfo` where TensorFlow is: eagerly, or in a graph and session of its own."""
    import tensorflow as tf

    with tf.init_scope():
        if tf.executing_eagerly():
            return module.blockcell_info().numpy()
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})  # It has no use for their memory.
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        return session.run(module.blockcell_info())


def find_library(path=None):
    """Finds the library built for the running TensorFlow, without loading it.

    Args:
      path: As of `load`.

    Returns:
      The file's `pathlib.Path`, absolute and without symbolic links.

    Raises:
      LibraryNotFoundError: There is no such file.
      LibraryError: The file's folder says that it was built for another TensorFlow.
    """
    import tensorflow as tf

    minor = _minor(tf.__version__)
    if path is not None:
        candidates, asked = [Path(path)], "the argument of load"
    elif os.environ.get(ENVIRONMENT):
        candidates, asked = [Path(os.environ[ENVIRONMENT])], "the variable " + ENVIRONMENT
    else:
        candidates, asked = [root / ("tf-" + minor) / LIBRARY for root in _roots()], None
    for candidate in candidates:
        if candidate.is_file():
            library = candidate.resolve()
            _check_folder(library, minor)
            return library
    named = f" (named by {asked})" if asked else ""
    raise LibraryNotFoundError(
        _explain(
            f"no library for TensorFlow {tf.__version__} was found",
            [f"there is no file {candidate}{named}" for candidate in candidates],
        )
    )


def _minor(version):
    """`"2.21"` of `"2.21.0"`, `"2.21.0rc1"` or `"2.21.0-dev20260101"`."""
    return ".".join(version.split(".")[:2])


def _source_tree():
    """The source tree this package is used from, or None if it is installed elsewhere."""
    tree = _PACKAGE.parent.parent
    return tree if (tree / "Cargo.toml").is_file() else None


def _roots():
    """The folders with one folder per TensorFlow, in the order of search."""
    tree = _source_tree()
    return [_PACKAGE / "lib"] + ([tree / "build"] if tree else [])


def _check_folder(library, minor):
    """Refuses a library that lies in the folder of another TensorFlow, before it is opened."""
    folder = re.match(r"tf-(\d+\.\d+)$", library.parent.name)
    if folder and folder.group(1) != minor:
        built_for = folder.group(1)
        raise LibraryError(
            _explain(f"{library} was built for TensorFlow {built_for}, but {minor} is running")
        )


def _explain(problem, details=()):
    """The one form of error message: what is wrong, what there is, how to build what is missing."""
    builds = [build for root in _roots() for build in sorted(root.glob("tf-*/" + LIBRARY))]
    found = ", ".join(f"{build.parent.name} ({build})" for build in builds) or "none"
    where = _source_tree() or "the source tree of blockcell"
    lines = ["blockcell: " + problem]
    lines += details
    lines.append("builds found: " + found)
    lines.append(f"to build it, run in {where}: make lib PYTHON={sys.executable}")
    return "\n  ".join(lines)


def _load_into_tensorflow(library):
    """Loads a file that `find_library` has found, for eager mode too."""
    import tensorflow as tf

    try:
        module = tf.load_op_library(str(library))
    except tf.errors.OpError as error:
        raise LibraryError(
            _explain(
                f"TensorFlow {tf.__version__} cannot load {library}",
                [f"it says: {error}", "it may have been built for another TensorFlow"],
            )
        ) from error
    # 1.15 has nothing to drop: its eager mode never runs the library's kernels.
    if not tf.__version__.startswith("1."):
        _drop_eager_kernels()
    return module


def _drop_eager_kernels():
    """Drops the kernels that eager mode has cached, if it has run at all.

    TensorFlow offers this in no public way.
    """
    from tensorflow.python.eager import context

    eager = context.context()
    if hasattr(eager, "clear_kernel_cache"):
        eager.clear_kernel_cache()
    elif eager._context_handle is not None:  # Releases of about 2.4.
        from tensorflow.python import pywrap_tfe

        pywrap_tfe.TFE_ContextClearCaches(eager._context_handle)
