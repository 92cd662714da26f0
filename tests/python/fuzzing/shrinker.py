"""Makes a failing program small: takes away what it also fails without."""

import copy

from fuzzing.programs import dependencies, full, liveness, ordered, pruned, split

TRIES = 1000


def shrink(program, fails, tries=TRIES):
    """The smallest program found that still fails.

    Args:
      program: A program that fails.
      fails: A function of a list of programs; tells of each whether it fails.
      tries: How many programs to run at most.
    """
    current, left = pruned(program), tries
    progress = True
    while progress and left > 0:
        progress = False
        smaller = _candidates(current)
        start = 0
        while start < len(smaller) and left > 0:
            # As many at a time as the processes take in one go.
            batch = smaller[start : start + 8]
            left -= len(batch)
            start += len(batch)
            better = [c for c, failed in zip(batch, fails(batch)) if failed]
            if better:
                current, progress = min(better, key=size), True
                break
    return current


def size(program):
    """What is made smaller."""
    nodes = program["nodes"]
    edges = sum(len(node["inputs"]) + 2 * len(node["after"]) for node in nodes)
    runs = sum(
        1 + len(run["fetches"]) + len(run["targets"]) + len(run["feeds"]) + len(run["stages"] or [])
        for run in program["runs"]
    )
    inside = sum(len(node["attrs"].get("body", [])) for node in nodes)
    plain = sum(node["op"] not in ("Const", "Placeholder") for node in nodes)
    return 4 * plain + 2 * len(nodes) + edges + runs + inside


def _candidates(program):
    """Smaller programs, those first that take away most."""
    found = list(_with_less_to_run(program)) + list(_with_fewer_nodes(program))
    found += list(_with_fewer_edges(program))
    unlike, sizes = [], size(program)
    for candidate in found:
        candidate = _valid(candidate)
        if candidate is not None and size(candidate) < sizes:
            unlike.append(candidate)
    return sorted(unlike, key=size)


def _valid(program):
    """The program without what nobody needs, or None if it has no meaning."""
    program = pruned(program)
    if not any(run["fetches"] for run in program["runs"]):
        return None
    for run in program["runs"]:
        if liveness(program["nodes"], run) is None or not ordered(program["nodes"], run):
            return None
        _feed_what_is_needed(program, run)
    return program


def _feed_what_is_needed(program, run):
    """Feeds the placeholders that came in place of other nodes, at once."""
    needed = set()
    every = dict(run, feeds=dict(run["feeds"]))
    placeholders = [node for node in program["nodes"] if node["op"] == "Placeholder"]
    for k, node in enumerate(placeholders):
        description = {"shape": node["shapes"][0], "seed": k}
        if node["dtype"] == "bool":
            description = {"value": False}
        every["feeds"].setdefault(full(node["name"]), description)
    for tensor in run["fetches"]:
        needed |= dependencies(program["nodes"], every, tensor)
    for name in run["targets"]:
        needed |= dependencies(program["nodes"], every, target=name)
    new = sorted(needed - set(run["feeds"]))
    run["feeds"] = {t: every["feeds"][t] for t in sorted(needed)}
    if run["stages"] is not None:
        for stage in run["stages"]:
            stage["feeds"] = [t for t in stage["feeds"] if t in needed]
        run["stages"][0]["feeds"] += new


def _with_less_to_run(program):
    for k, run in enumerate(program["runs"]):
        yield dict(program, runs=program["runs"][:k] + program["runs"][k + 1 :])
        for name in ("fetches", "targets"):
            for item in run[name]:
                yield _changed_run(program, k, name, item)
        for tensor in run["feeds"]:
            node = next(n for n in program["nodes"] if n["name"] == split(tensor)[0])
            if node["op"] != "Placeholder":
                yield _changed_run(program, k, "feeds", tensor)
        if run["stages"] is not None:
            changed = copy.deepcopy(program)
            changed["runs"][k]["stages"] = None
            yield changed
            for stage in range(1, len(run["stages"])):
                changed = copy.deepcopy(program)
                stages = changed["runs"][k]["stages"]
                late = stages.pop(stage)
                stages[stage - 1]["feeds"] += late["feeds"]
                stages[stage - 1]["fetches"] += late["fetches"]
                yield changed


def _changed_run(program, k, name, item):
    """Without a fetch, a target or a feed."""
    changed = copy.deepcopy(program)
    run = changed["runs"][k]
    if name == "feeds":
        del run["feeds"][item]
    else:
        run[name].remove(item)
    for stage in run["stages"] or []:
        if item in stage.get(name, []):
            stage[name].remove(item)
    return changed


def _with_fewer_nodes(program):
    """With a placeholder in the place of a node, or another tensor of its shape."""
    for k, node in enumerate(program["nodes"]):
        if node["op"] == "Placeholder" or not node["shapes"]:
            continue
        if len(node["shapes"]) > 1:
            for i in range(len(node["inputs"])):
                yield from _with_cut(program, k, i)
        if len(node["shapes"]) == 1 and node["dtype"] in ("float", "half"):
            attrs = {"shape": node["shapes"][0]}
            yield _with_node(program, k, op="Placeholder", inputs=[], after=[], attrs=attrs)
        for tensor in node["inputs"]:
            if _shape(program, tensor) == (node["dtype"], node["shapes"][0]):
                yield _with_tensor(program, node["name"], tensor)
                break


def _with_cut(program, k, i):
    """With a placeholder in the place of a node's input."""
    node = program["nodes"][k]
    dtype, shape = _shape(program, node["inputs"][i])
    if dtype != node["dtype"]:
        return
    name = "cut_{}_{}".format(node["name"], i)
    cut = {"name": name, "op": "Placeholder", "inputs": [], "after": [], "dtype": dtype}
    cut.update(shapes=[shape], attrs={"shape": shape})
    changed = _with_node(program, k, inputs=node["inputs"][:i] + [name] + node["inputs"][i + 1 :])
    changed["nodes"].insert(k, cut)
    yield changed


def _with_fewer_edges(program):
    for k, node in enumerate(program["nodes"]):
        for awaited in node["after"]:
            after = [name for name in node["after"] if name != awaited]
            yield _with_node(program, k, after=after)
        if node["op"] in ("AddN", "Add", "AddV2") and len(node["inputs"]) > 1:
            for i in range(len(node["inputs"])):
                inputs = node["inputs"][:i] + node["inputs"][i + 1 :]
                yield _with_node(program, k, op="AddN", inputs=inputs)
        for i, tensor in enumerate(node["inputs"]):
            # The first tensor of its kind is as good as any.
            same = _first_like(program, k, tensor)
            if same not in (None, tensor):
                inputs = node["inputs"][:i] + [same] + node["inputs"][i + 1 :]
                yield _with_node(program, k, inputs=inputs)


def _first_like(program, k, tensor):
    kind = _shape(program, tensor)
    for node in program["nodes"][:k]:
        if node["op"] == "Placeholder" and (node["dtype"], node["shapes"][0]) == kind:
            return node["name"]
    return None


def _shape(program, tensor):
    name, index = split(tensor)
    node = next((n for n in program["nodes"] if n["name"] == name), None)
    return (node["dtype"], node["shapes"][index]) if node else None


def _with_node(program, k, **changes):
    nodes = list(program["nodes"])
    nodes[k] = dict(nodes[k], **changes)
    return dict(program, nodes=nodes, runs=copy.deepcopy(program["runs"]))


def _with_tensor(program, name, tensor):
    """With a tensor wherever the first output of a node was read."""
    other = lambda t: tensor if full(t) == name + ":0" else t  # noqa: E731
    waits = split(tensor)[0]
    nodes = []
    for node in program["nodes"]:
        after = [waits if n == name else n for n in node["after"]]
        after = sorted(set(after) - {node["name"]}, key=after.index)
        nodes.append(dict(node, inputs=[other(t) for t in node["inputs"]], after=after))
    runs = copy.deepcopy(program["runs"])
    for run in runs:
        run["fetches"] = sorted({other(t) for t in run["fetches"]})
        for stage in run["stages"] or []:
            stage["fetches"] = sorted({other(t) for t in stage["fetches"]})
    return dict(program, nodes=nodes, runs=runs)
