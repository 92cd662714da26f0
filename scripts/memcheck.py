"""Runs every op in TensorFlow under valgrind's memcheck, and counts the errors of the library.

    python memcheck.py [VALGRIND'S OPTIONS]

valgrind finds errors in Python and TensorFlow, too. Those count here that have a frame of
`libblockcell.so`. Blocks that are not freed at the end are no errors here: TensorFlow's registries
keep a hundred thousand; `make leaks` looks for those that grow. valgrind has no AVX-512, so kernels
run on AVX2.
"""

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = "libblockcell.so"


def main():
    """Exits with status 1 if an error is the library's, or the calls fail."""
    variables = dict(
        os.environ,
        BLOCKCELL_ISA="avx2",
        PYTHONMALLOC="malloc",
        PYTHONPATH=os.pathsep.join([str(ROOT / "python"), str(ROOT / "tests" / "python")]),
        TF_CPP_MIN_LOG_LEVEL="2",
    )
    with tempfile.NamedTemporaryFile("r", suffix=".xml") as file:
        command = ["valgrind", "--quiet", "--error-limit=no", "--num-callers=40", "--leak-check=no"]
        command += ["--xml=yes", f"--xml-file={file.name}", *sys.argv[1:]]
        command += [sys.executable, "-m", "helpers.every_op"]
        code = subprocess.run(command, env=variables, check=False).returncode
        errors = list(ElementTree.parse(file.name).getroot().iter("error"))
    ours = [error for error in errors if _is_ours(error)]
    for error in ours:
        print(_described(error))
    print(f"| errors | with a frame of {OURS} |\n|---|---|\n| {len(errors)} | {len(ours)} |")
    sys.exit(1 if ours or code else 0)


def _is_ours(error):
    return any(name.text.endswith(OURS) for name in error.iter("obj"))


def _described(error):
    frames = [
        f"    {frame.findtext('fn', '?')} ({frame.findtext('obj', '?')})"
        for frame in error.iter("frame")
    ]
    what = error.findtext("what") or error.findtext("xwhat/text") or "?"
    return "\n".join([what, *frames])


if __name__ == "__main__":
    main()
