"""Times TensorFlow's kernels and ours side by side: `python -m bench --help`.

Both run in one process and take turns, on the same tensors, after their answers were compared. How
far ours are from what the machine can do at best is measured in the same run.
"""

import sys
from pathlib import Path

# The package, if it is not installed.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
