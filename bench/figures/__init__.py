"""The page of figures, made of what the benchmarks have written: `python -m bench.figures`."""
