"""Makes a failing program small: takes away what it also fails without."""

import copy

from fuzzing.programs import dependencies, full, liveness, ordered, plain, pruned, split

TRIES = 500
BATCH = 8  # As many at a time as the processes take in one go.


def small(runner, verdict, tries=TRIES):
    """The program of a finding, made small."""
    if verdict.kind == "invalid":
        return verdict.program
    if verdict.kind == "hang":  # Each takes seconds.
        tries = min(tries, 100)
    return shrink(verdict.program, lambda some: runner.fail(some, verdict.kind), tries)


def shrink(program, fails, tries):
    """The smallest program found that still fails.

    Args:
      program: A program that fails.
      fails: A function of a list of programs; tells of each whether it fails.
      tries: How many programs to run at most.
    """
    current, left = pruned(program), tries
    tried, progress = set(), False
    while left > 0:
        batch = [c for c in _candidates(current) if c[0] not in tried][:BATCH]
        if not batch:
            if not progress:
                break
            tried, progress = set(), False  # What was needed before may not be any more.
            continue
        left -= len(batch)
        tried.update(key for key, _ in batch)
        better = [c for (_, c), failed in zip(batch, fails([c for _, c in batch])) if failed]
        if better:
            current, progress = min(better, key=size), True
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
    """Smaller programs, those first that take away most, each behind a key that says what goes."""
    found, most = [], size(program)
    for edits in (_with_less_to_run, _with_fewer_nodes, _with_fewer_edges):
        for key, candidate in edits(program):
            candidate = _valid(candidate)
            if candidate is not None and size(candidate) < most:
                found.append((key, candidate))
    return sorted(found, key=lambda pair: size(pair[1]))


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
        yield ("run", k), dict(program, runs=program["runs"][:k] + program["runs"][k + 1 :])
        for name in ("fetches", "targets"):
            for item in run[name]:
                yield (name, k, item), _changed_run(program, k, name, item)
        for tensor in run["feeds"]:
            node = next(n for n in program["nodes"] if n["name"] == split(tensor)[0])
            if node["op"] != "Placeholder":
                yield ("feeds", k, tensor), _changed_run(program, k, "feeds", tensor)
        if run["stages"] is not None:
            changed = copy.deepcopy(program)
            changed["runs"][k]["stages"] = None
            yield ("stages", k), changed
            for stage in range(1, len(run["stages"])):
                changed = copy.deepcopy(program)
                stages = changed["runs"][k]["stages"]
                late = stages.pop(stage)
                stages[stage - 1]["feeds"] += late["feeds"]
                stages[stage - 1]["fetches"] += late["fetches"]
                yield ("stage", k, stage), changed


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
    """With placeholders in the place of a node or its inputs, or another tensor of its shape."""
    for k, node in enumerate(program["nodes"]):
        name = node["name"]
        if node["op"] == "Placeholder" or not node["shapes"]:
            continue
        yield ("inputs", name), _with_cut(program, k, range(len(node["inputs"])))
        for i in range(len(node["inputs"])):
            yield ("input", name, i), _with_cut(program, k, [i])
        if len(node["shapes"]) == 1 and node["dtype"] in ("float", "half"):
            new = {"op": "Placeholder", "inputs": [], "after": []}
            attrs = {"shape": node["shapes"][0]}
            yield ("node", name), _with_node(program, k, attrs=attrs, **new)
        for tensor in node["inputs"]:
            if _shape(program, tensor) == (node["dtype"], node["shapes"][0]):
                yield ("bypass", name), _with_tensor(program, name, tensor)
                break


def _with_cut(program, k, which):
    """With placeholders in the place of some of a node's inputs, one for each shape."""
    node = program["nodes"][k]
    inputs, cuts = list(node["inputs"]), {}
    for i in which:
        dtype, shape = _shape(program, inputs[i])
        if dtype == node["dtype"]:
            name = "cut_{}_{}".format(node["name"], "x".join(map(str, shape)))
            attrs = {"shape": shape}
            cuts[name] = dict(plain("Placeholder", name, [], dtype, **attrs), shapes=[shape])
            inputs[i] = name
    changed = _with_node(program, k, inputs=inputs)
    there = {node["name"] for node in program["nodes"]}
    changed["nodes"][k:k] = [cut for name, cut in cuts.items() if name not in there]
    return changed


def _with_fewer_edges(program):
    for k, node in enumerate(program["nodes"]):
        name, inputs = node["name"], node["inputs"]
        for awaited in node["after"]:
            after = [other for other in node["after"] if other != awaited]
            yield ("after", name, awaited), _with_node(program, k, after=after)
        if node["op"] in ("AddN", "Add", "AddV2") and len(inputs) > 1:
            for i, tensor in enumerate(inputs):
                fewer = inputs[:i] + inputs[i + 1 :]
                yield ("term", name, tensor), _with_node(program, k, op="AddN", inputs=fewer)
        for i, tensor in enumerate(inputs):
            # The first tensor of its kind is as good as any.
            same = _first_like(program, k, tensor)
            if same not in (None, tensor):
                changed = inputs[:i] + [same] + inputs[i + 1 :]
                yield ("same", name, i), _with_node(program, k, inputs=changed)


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
