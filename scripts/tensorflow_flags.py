"""Prints what compiling for a TensorFlow takes; `build.rs` reads it.

    python tensorflow_flags.py           of the TensorFlow in this Python, which it imports
    python tensorflow_flags.py FOLDER    of the package in FOLDER, which need not be importable

The answer: a line with the word blockcell (importing TensorFlow may print other things before), the
version, one compiler flag a line, a line with the word link, one linker flag a line.
"""

import mmap
import re
import sys
from pathlib import Path


def of_this_python():
    """The version and flags that the TensorFlow of this Python states."""
    import tensorflow as tf

    return tf.__version__, tf.sysconfig.get_compile_flags(), tf.sysconfig.get_link_flags()


def of_folder(folder):
    """The version and flags of an unpacked package, as its `tf.sysconfig` would state them.

    Args:
      folder: The package `tensorflow`, or `tensorflow_core` of TensorFlow 1.15, beside the
        `.dist-info` folder of its wheel.
    """
    folder = Path(folder).absolute()
    version = _version(folder)
    framework = sorted(folder.glob("libtensorflow_framework.so.[0-9]"))[0]
    with framework.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        new_abi = data.find(b"_ZN10tensorflow12OpDefBuilder4AttrENSt7__cxx11") >= 0
    compile_flags = [f"-I{folder / 'include'}", f"-D_GLIBCXX_USE_CXX11_ABI={int(new_abi)}"]
    # tf.sysconfig names the C++ standard from 2.11 on, and the alignment from 2.6 on.
    numbers = tuple(int(number) for number in version.split(".")[:2])
    if numbers >= (2, 11):
        compile_flags.append("--std=c++17")
    if numbers >= (2, 6):
        compile_flags.append("-DEIGEN_MAX_ALIGN_BYTES=64")
    return version, compile_flags, [f"-L{folder}", "-l:" + framework.name]


def _version(folder):
    """The version in the name of the package's `.dist-info` folder."""
    for neighbour in folder.parent.glob("tensorflow*.dist-info"):
        found = re.match(r"tensorflow(_cpu(_aws)?)?-(\d+\.\d+[^-]*)\.dist-info$", neighbour.name)
        if found:
            return found.group(3)
    sys.exit(f"{folder.parent} has no .dist-info folder of TensorFlow")


def main():
    """Prints the answer."""
    version, compile_flags, link_flags = (
        of_folder(sys.argv[1]) if len(sys.argv) > 1 else of_this_python()
    )
    print("blockcell", version, *compile_flags, "link", *link_flags, sep="\n")


if __name__ == "__main__":
    main()
