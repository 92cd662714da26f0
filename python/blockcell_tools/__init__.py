"""Programs around `blockcell`, and what they and its tests compare with: nothing that it needs.

`bench` and `verification` are behind the commands of these names. `reference` has the operations in
float64. `graph_nodes` and `graph_plan` read graphs for `blockcell inspect`.
"""
