"""Finds, checks and loads the library built for the running TensorFlow.

A library serves one minor release of TensorFlow, because TensorFlow's C++ interface changes with
each. Builds therefore lie in folders named after it: `tf-2.21/libblockcell.so`.
"""

import contextlib
import json
import logging
import os
import re
import shutil
import sys
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from blockcell import building, elf, loaded_libraries, tf_internals
from blockcell.version import __version__

LIBRARY = building.LIBRARY
ENVIRONMENT = "BLOCKCELL_LIBRARY"
TAKE_OVER_VARIABLE = "BLOCKCELL_OVERRIDE"
"""An interface, hence the name: 0 keeps the library from taking over the stock kernels."""
WEIGHTS_VARIABLE = "BLOCKCELL_WEIGHTS"
"""What constant weights are packed as."""
WEIGHTS = ("float32", "int8")

_PACKAGE = Path(__file__).resolve().parent
KNOWN_WHEN_LOADED = (
    *("isa", "ops", "taken_over", "override", "cudnn", "rewrite", "rewritten", "failed_passes"),
    *("runs", "runs_in_int8", "runs_in_bfloat16", "int8_errors", "labels", "weights"),
    "layers",
    "kept_weight_bytes",
    *("float32_matmul_precision", "float32_matmul_runs"),
)
_lock = threading.RLock()
_loaded: Dict[str, Any] = {}  # "path", "module" and "take_over", once the library is loaded


class LibraryError(ImportError):
    """A library was found, but it does not work with the running TensorFlow."""


class LibraryNotFoundError(LibraryError):
    """There is no library for the running TensorFlow."""


def load(
    path: Optional[Union[str, Path]] = None,
    take_over: bool = True,
    replace_gradients: bool = True,
    weights: Optional[str] = None,
    keep_x: Optional[str] = None,
) -> Any:
    """Loads the library built for the running TensorFlow.

    Clears the kernel cache of eager mode, so that ops and `tf.function`s which ran before
    also use the library's kernels. A session keeps the kernels of the graphs that it has run.
    Loading runs no op and starts no thread pool, so TensorFlow can still be configured afterwards.

    Registers Python gradients of first and second order for the library's own ops and for the block
    RNN ops. TensorFlow has some of first order and none of second order. **TensorFlow's are
    replaced**, because they are wrong or incomplete:

    * The gradient of `BlockLSTMV2` is wrong: it calls `BlockLSTMGrad`, which expects the columns of
      the weights in the order of `BlockLSTM`. The library's calls `BlockLSTMGradV2`.
    * The gradients of `BlockLSTM`, and in TensorFlow 1.15 of `GRUBlockCell` and `LSTMBlockCell`
      from tf.contrib, ignore gradients that arrive at other outputs than h (and cs). The library's
      include them.

    Gradients that are computed afterwards use them, also for ops and functions that ran before. A
    gradient that is already part of a graph, or of a `tf.function` that was traced with a tape
    inside or differentiated before, does not change: load the library first.

    A gradient that a program registers afterwards, for example by
    `tf.RegisterGradient("GRUBlockCell")`, permanently replaces the library's, whose gradient of the
    gradient op is then removed, too. A gradient that was registered before is replaced, unless
    `replace_gradients` is False.

    If gradients arrive at outputs that the gradient kernels do not support, such as gates,
    TensorFlow's own ops compute the gradient, which is slow. The logger `"blockcell"` reports this
    once per op: as a warning for sequences, as information for single steps.

    Further calls return the same module. If TensorFlow is newer than the newest release that was
    tested, the logger prints one warning.

    Args:
      path: The library's file. By default the first of these that exists: the file named by the
        environment variable `BLOCKCELL_LIBRARY`, `lib/tf-<minor>/libblockcell.so` in this package,
        `build/tf-<minor>/libblockcell.so` in the source tree of this package, and the library that
        the command `blockcell build` has built for this user.
      take_over: Whether the library takes over the stock kernels of unlabelled nodes. False has the
        effect of `BLOCKCELL_OVERRIDE=0` in this process: only nodes whose attribute `_kernel` is
        `"blockcell"` run on the library's kernels. If that variable is 0, True has no effect.
      replace_gradients: Whether to replace gradients of block RNN ops that are already registered.
        If False, they are kept, and their ops get no second order gradients, which would be wrong
        if the first order is incomplete. A later call does not undo a replacement.
      weights: `"int8"` packs constant weights of sequences, and variables that a graph does not
        write, in int8, for faster inference with lower accuracy. Gradients are then an error. By
        default the value of the environment variable `BLOCKCELL_WEIGHTS`, or `"float32"`.
      keep_x: `"float32"` keeps the weights of the layers' inputs in float32. Requires
        `weights="int8"`.

    Returns:
      The module of the library's own ops, as from `tf.load_op_library`.

    Raises:
      LibraryNotFoundError: There is no such file. The message lists the existing builds, and the
        command that builds the library.
      LibraryError: The file is not a library for the running TensorFlow, or this process has
        already loaded another library, or the same one with take-over or with other weights.
      ValueError: There is no such value of `weights` or `keep_x`.
    """
    packed = packed_as(weights, keep_x)
    with _lock:
        if not _loaded:
            library = find_library(path)
            changes = {} if take_over else {TAKE_OVER_VARIABLE: "0"}
            if packed:
                changes[WEIGHTS_VARIABLE] = packed
            with _environment(changes):
                module = _load_into_tensorflow(library)
            _loaded.update(module=module, path=library, take_over=take_over)
            _warn_of_newer()
        elif path is not None and not _is_loaded(Path(path)):
            raise LibraryError(_only_one(path, _loaded["path"]))
        elif _loaded["take_over"] and not take_over and info()["taken_over"]:
            raise LibraryError(
                "blockcell: the library has already taken over the stock kernels of this process: "
                "pass take_over=False to the first load()"
            )
        if packed and info()["weights"] != packed:
            raise LibraryError(
                f"blockcell: weights are already {info()['weights']} in this process: "
                f"pass {packed} to the first load()"
            )
        from blockcell.gradients import registry

        registry.register(_loaded["module"], replace_gradients)
        return _loaded["module"]


def _warn_of_newer() -> None:
    """Logs once if the running TensorFlow is newer than the newest tested one."""
    import tensorflow as tf

    warning = building.newer_than_tested(tf.__version__)
    if warning is not None:
        logging.getLogger("blockcell").warning("%s", warning)


def _is_loaded(path: Path) -> bool:
    """Whether `load` has loaded this file, by whatever path."""
    with contextlib.suppress(OSError):
        return path.samefile(_loaded["path"])
    return path.resolve() == _loaded["path"]  # It may have been removed since.


def module() -> Any:
    """Returns the module of the library's own ops; calls `load()` first if that was not done."""
    with _lock:
        return _loaded.get("module") or load()


def path() -> str:
    """Returns the loaded library's file; calls `load()` first if that was not done."""
    with _lock:
        module()
        return str(_loaded["path"])


def info() -> Dict[str, Any]:
    """Returns what is in use, or would be. It neither loads the library nor registers gradients.

    After `load()` it runs the op `BlockcellInfo`, which starts TensorFlow's runtime: configure
    TensorFlow before.

    Returns:
      A dictionary with these keys. Values that are not known before `load()` are None.

      * `loaded`: Whether `load()` was called.
      * `version`: The version of the library; of this package before `load()`.
      * `library`: The library's file, or the one that `load()` would load; None if there is none.
      * `problem`: The error that `load()` would raise, or None.
      * `tensorflow_running`, `tensorflow_built_for`: Versions of TensorFlow. Before `load()` the
        second one is taken from the name of the library's folder.
      * `isa`: `"avx512_bf16"`, `"avx512_vnni"`, `"avx512"`, `"avx2_vnni"`, `"avx2"`,
        `"neon_dotprod"`, `"neon"` or `"portable"`.
      * `float32_matmul_precision`: The level set by `set_float32_matmul_precision`.
      * `float32_matmul_runs`: The level that this processor supports: the same or a higher one.
        Products for which a lower level is not faster run at `"highest"`.
      * `weights`: The type of packed constant weights: `"float32"`, `"int8"`, or
        `"int8_except_x"` with the weights of x in float32.
      * `ops`: Names of the ops that have a kernel.
      * `taken_over`: Names of the ops whose stock kernels the library has taken over.
      * `override`: How they are taken over: `"priority"`, `"graph_pass"` or `"off"`.
      * `cudnn`: Whether there are kernels of cuDNN's ops, `"on"` or `"off"`.
      * `rewrite`: Whether graphs are rewritten, `"on"` or `"off"`.
      * `rewritten`: The number of nodes put into graphs of this process, by op.
      * `failed_passes`: The number of graph passes of this process that failed, which is a bug in
        blockcell. They leave their graph unchanged.
      * `kept_weight_bytes`: The memory of packed weights that kernels cache between calls.
      * `runs`: The number of calls of the library's kernels, by op.
      * `runs_in_int8`: The same for calls with weights in int8. The other calls in `runs` had
        weights that are not constant, or shapes at which int8 is not faster.
      * `runs_in_bfloat16`: The same for calls with factors of products in bfloat16, at `"medium"`.
      * `int8_errors`: The last result of `blockcell.int8_errors`.
      * `labels`: As `runs`, for nodes with the attribute `_blockcell_label`, by its value.
      * `layers`: How the nodes with such an attribute compute, by its value, which is the name of a
        layer and a number where `blockcell.keras` has set it. A dictionary with the `type` of the
        tensors (`"float"`, `"half"` or `"bfloat16"`), the `precision` of matrix products (the level
        that this processor supports), the type of packed constant `weights`, the instruction set
        `isa`, and the numbers of calls `runs`, `runs_in_int8` and `runs_in_bfloat16`.

    Raises:
      LibraryError: The loaded library was built for another TensorFlow, which was not detected
        when it was loaded.
    """
    with _lock:
        return _info_of_loaded() if _loaded else _info_before()


def _info_before() -> Dict[str, Any]:
    import tensorflow as tf

    library = built_for = problem = None
    try:
        library = find_library()
        built_for = _minor_of_folder(library)
    except LibraryError as error:
        problem = str(error)
    return {
        "loaded": False,
        "version": __version__,
        "library": None if library is None else str(library),
        "problem": problem,
        "tensorflow_running": tf.__version__,
        "tensorflow_built_for": built_for,
        **dict.fromkeys(KNOWN_WHEN_LOADED),
    }


def _info_of_loaded() -> Dict[str, Any]:
    answer: Dict[str, Any] = json.loads(_run_info(_loaded["module"]).decode())
    built_for, running = answer["tensorflow_built_for"], answer["tensorflow_running"]
    if building.minor(built_for) != building.minor(running):
        raise _built_for_another(_loaded["path"], built_for, running)
    return dict(answer, loaded=True, library=str(_loaded["path"]), problem=None)


def packed_as(weights: Optional[str], keep_x: Optional[str]) -> Optional[str]:
    """The value of `WEIGHTS_VARIABLE`, or None where it stays as it is.

    Args:
      weights: As of `load`.
      keep_x: As of `load`.

    Raises:
      ValueError: There is no such value.
    """
    for name, value, values in (("weights", weights, WEIGHTS), ("keep_x", keep_x, WEIGHTS[:1])):
        if value not in (None, *values):
            raise ValueError(f"{name} must be {' or '.join(map(repr, values))}, got {value!r}")
    if keep_x is None:
        return weights
    if weights != "int8":
        raise ValueError(f"keep_x={keep_x!r} requires weights='int8'")
    return "int8_except_x"


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Sets variables that the library reads while it is loaded.

    Python sets the variables of the process, which C++ sees.
    """
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _run_info(module: Any) -> bytes:
    """Runs `BlockcellInfo` where TensorFlow is: eagerly, or in a graph and session of its own."""
    import tensorflow as tf

    with tf.init_scope():
        if tf.executing_eagerly():
            return module.blockcell_info().numpy()
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})  # It has no use for their memory.
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        return session.run(module.blockcell_info())


def find_library(path: Optional[Union[str, Path]] = None) -> Path:
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

    minor = building.minor(tf.__version__)
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
    there_is = ("there is no file {}{}", "{}{} is a folder, not a file")
    raise LibraryNotFoundError(
        _explain(
            f"no library for TensorFlow {tf.__version__} was found",
            [there_is[one.is_dir()].format(one, named) for one in candidates],
        )
    )


def _source_tree() -> Optional[Path]:
    """The source tree this package is used from, or None if it is installed elsewhere."""
    tree = _PACKAGE.parent.parent
    return tree if (tree / "Cargo.toml").is_file() else None


def _roots() -> List[Path]:
    """The folders with one folder per TensorFlow, in the order of search."""
    tree = _source_tree()
    return [_PACKAGE / "lib"] + ([tree / "build"] if tree else []) + [building.user_folder()]


def _minor_of_folder(library: Path) -> Optional[str]:
    """`"2.21"` of a library in the folder `tf-2.21`; None if its folder has another name."""
    folder = re.match(r"tf-(\d+\.\d+)$", library.parent.name)
    return folder.group(1) if folder else None


def _check_folder(library: Path, minor: str) -> None:
    """Refuses a library that lies in the folder of another TensorFlow, before it is opened."""
    built_for = _minor_of_folder(library)
    if built_for not in (None, minor):
        raise _built_for_another(library, built_for, minor)


def _built_for_another(library: Path, built_for: Optional[str], running: str) -> LibraryError:
    return LibraryError(
        _explain(f"{library} was built for TensorFlow {built_for}, but {running} is running")
    )


def _explain(problem: str, details: Sequence[str] = ()) -> str:
    """The form of all error messages: the problem, details, existing builds, and what to do."""
    builds = [build for root in _roots() for build in sorted(root.glob("tf-*/" + LIBRARY))]
    found = ", ".join(f"{build.parent.name} ({build})" for build in builds) or "none"
    return "\n  ".join(["blockcell: " + problem, *details, "builds found: " + found, *_ways_out()])


def _ways_out() -> Iterator[str]:
    """What the user can do, depending on the installation."""
    tree = _source_tree()
    if tree:
        yield f"to build it, run in {tree}: make lib PYTHON={sys.executable}"
    elif building.source_tree():
        tools = [tool for tool in ("cargo", "c++") if shutil.which(tool) is None]
        needs = f" (first install {' and '.join(tools)})" if tools else ""
        yield f"to build it, run: {sys.executable} -m blockcell build{needs}"
    yield (f"to use a library from elsewhere, set {ENVIRONMENT}=FILE, or call blockcell.load(FILE)")


def _check_length(library: Path) -> None:
    """Rejects a truncated file: to load it would end the process."""
    has, needs = library.stat().st_size, elf.length(library)
    if has < needs:
        problem = f"{library} is truncated: it has {has:,} of {needs:,} bytes"
        raise LibraryError(_explain(problem, ["copy it again, and check for a full disk"]))


def _load_into_tensorflow(library: Path) -> Any:
    """Loads a file that `find_library` has found, for eager mode too."""
    import tensorflow as tf

    names = loaded_libraries.names_of(library)
    module = _loaded_before(names) if names else _load_first(library)
    if module is None:
        # One that was refused stays in the process. TensorFlow takes it for loaded from then on.
        problem = f"{library} has registered nothing in TensorFlow {tf.__version__}"
        raise LibraryError(_another_copy(library) or _explain(problem))
    # 1.15 has nothing to drop: its eager mode never runs the library's kernels.
    if not tf.__version__.startswith("1."):
        tf_internals.drop_eager_kernels()
    return module


def _load_first(library: Path) -> Any:
    """The module of a file that this process has not loaded before; None if it has no ops."""
    import tensorflow as tf

    _check_length(library)
    try:
        return _with_ops(tf.load_op_library(str(library)))
    except tf.errors.OpError as error:
        says = f"it says: {error}"
        problem = f"TensorFlow {tf.__version__} cannot load {library}"
        hint = "it may have been built for another TensorFlow"
        # A file that the system cannot open would not be loaded by itself, either.
        cannot_open = isinstance(error, tf.errors.NotFoundError)
        another = "" if cannot_open else _another_copy(library, says)
        raise LibraryError(another or _explain(problem, [says, hint])) from error


def _loaded_before(names: Sequence[str]) -> Any:
    """The module of a file that TensorFlow has loaded under one of these names, or None."""
    import tensorflow as tf

    for name in names:
        with contextlib.suppress(tf.errors.OpError):
            module = _with_ops(tf.load_op_library(name))
            if module is not None:
                return module
    return None


def _with_ops(module: Any) -> Any:
    """The module of an op library; None if that has registered nothing."""
    return module if hasattr(module, "blockcell_info") else None


def _another_copy(library: Path, *details: str) -> str:
    """What to say where this process has loaded another file of that name; else nothing."""
    others = loaded_libraries.others_like(library)
    return "\n  ".join([_only_one(library, others[0]), *details]) if others else ""


def _only_one(wanted: Union[str, Path], loaded: Union[str, Path]) -> str:
    return (
        f"blockcell: cannot load {wanted}: this process has loaded {loaded}, and one process can "
        "load only one library"
    )
