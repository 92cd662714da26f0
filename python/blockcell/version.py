"""The version of this package and of the library that it was made with."""

__version__ = "0.1.0"
