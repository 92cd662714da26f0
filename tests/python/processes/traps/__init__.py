"""Small graphs around the gradient ops of cells, for `graph_pass/test_traps.py`.

A graph is a function of a `Net` that returns what to fetch. Each is in the module of its theme:

    net        what all graphs are made of
    sums       sums of the gradients of weights and biases
    slices     slices of the gradients of x and h_prev
    waiting    control inputs of such slices
    variables  variables with references, which change while the graph runs
    branches   parts of a graph that are dead
    stages     `partial_run`: what is fed later than something else is fetched
    cells      steps of plain cells, and what is nearly one
    depth      deep and large graphs, in threads with small stacks
"""
