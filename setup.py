"""Builds the library into the package; the rest stands in pyproject.toml.

`pip install .` builds it for the TensorFlow of the environment that it installs into. Where
BLOCKCELL_LIBRARIES names a folder with libraries (`tf-<minor>/libblockcell.so`), those are taken
instead, as `make wheel` does.
"""

import os
import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

TREE = Path(__file__).resolve().parent
sys.path.insert(0, str(TREE / "python"))

from blockcell import building  # noqa: E402


class BinaryDistribution(Distribution):
    """A package for one platform: that of the library."""

    def has_ext_modules(self):
        """Makes setuptools name the platform in the wheel's tag."""
        return True


class Wheel(bdist_wheel):
    """A wheel for any Python: the library knows TensorFlow, not Python."""

    def get_tag(self):
        """The tag, `py3-none-<platform>`."""
        return ("py3", "none", super().get_tag()[2])


class BuildPy(build_py):
    """Puts the libraries and the sources that they are built from beside the modules."""

    def run(self):
        """Builds; an editable installation has its library in `build/`, as `make` does."""
        if getattr(self, "editable_mode", False):
            super().run()
            _build(TREE / "build")
            return
        package = Path(self.build_lib) / "blockcell"
        # What an earlier build for another TensorFlow has left.
        for name in ("blockcell", "blockcell_tools"):
            shutil.rmtree(str(Path(self.build_lib) / name), ignore_errors=True)
        super().run()
        ready = os.environ.get("BLOCKCELL_LIBRARIES")
        if ready:
            shutil.copytree(ready, str(package / "lib"))
        else:
            _build(package / "lib")
        building.copy_sources(TREE, package / "source")


def _build(folder):
    """Builds the library for the environment's TensorFlow; ends with one line if it cannot."""
    try:
        building.check_tools()
        building.build(TREE, folder, building.ask(TREE, building.target_python()))
    except building.BuildError as error:
        sys.exit(f"blockcell: {error}")


setup(
    distclass=BinaryDistribution,
    cmdclass={"build_py": BuildPy, "bdist_wheel": Wheel},
)
