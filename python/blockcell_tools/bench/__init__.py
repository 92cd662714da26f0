"""Times TensorFlow's kernels and ours side by side: the command `blockcell bench`.

Both run in one process and take turns, on the same tensors, after their answers were compared. How
far ours are from what the machine can do at best is measured in the same run.

    files              what is written at the end
    run                measures case after case; rows: keeps them as they are measured
    report, plots, page   tables, plots, a page of both
    models             the same for a model: model_side, on tensorflow_side
    turns, side        any number of sides in processes of their own, which take turns
    tables, ops, shapes   what is measured
    worker, workers    the processes that measure; graphs, timing, agreement: how
    machine, memory    the machine's limits, peak memory
"""
