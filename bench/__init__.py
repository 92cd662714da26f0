"""Times TensorFlow's kernels and ours side by side: `python -m bench --help`.

Both run in one process and take turns, on the same tensors, after their answers were compared. How
far ours are from what the machine can do at best is measured in the same run.
"""
