"""What a model or a program gains: it is run without and with the library.

`models` times calls of a model from a file, in processes that take turns. `programs` runs a Python
program twice, and times the steps that it takes. Both return `results.Found`, which `report` and
`page` show.
"""
