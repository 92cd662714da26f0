"""Malformed and odd calls of every op of the library, each judged: see `__main__`."""
