"""The version of this package and of the library that it was made with."""

__version__ = "1.0.0rc1"
