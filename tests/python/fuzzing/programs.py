"""Programs as plain data: what JSON can hold, so that any process builds the same graph.

A program is a dictionary:
  seed: Where it comes from.
  nodes: A list of nodes in an order in which each comes after all that it refers to.
  runs: What a session does with the graph, one call after the other.

A node is a dictionary with `name`, `op`, `inputs` (tensors, "node" or "node:1"), `after` (names of
nodes, the control inputs), `dtype` ("float", "half", "int32" or "bool"), `shapes` (of its outputs)
and `attrs`. Ops are TensorFlow's, but for those of `SPECIAL`.

A run is a dictionary with `feeds` (values by tensor, see `builder.value`), `fetches` (tensors),
`targets` (names of nodes) and `stages`: None, or for a partial run the lists of feeds and fetches
of each call.
"""

import functools

SPECIAL = {
    "Variable": "a ref variable (VariableV2) with an initial value",
    "ResourceVariable": "a resource variable with an initial value; its output is the handle",
    "Loop": "a loop of TensorFlow 1: attrs have trips, body and results",
    "Sequence": "a loop of TensorFlow 1 over the steps of its first input: see `frames.sequence`",
    "ListSequence": "the same with lists of tensors, as Keras 3 makes it: see `lists.loop`",
    "While": "a loop of TensorFlow 2, with the attributes of Loop",
    "Call": "a call of a tf.function: attrs have body and results",
    "Gradients": "tf.gradients of the first `of` inputs by the others, and not beyond these",
}
FRAMES = ("Loop", "Sequence", "ListSequence")
VARIABLES = ("Variable", "ResourceVariable")
REF_ASSIGNMENTS = ("Assign", "AssignAdd", "AssignSub")
RESOURCE_ASSIGNMENTS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")
ASSIGNMENTS = REF_ASSIGNMENTS + RESOURCE_ASSIGNMENTS
# Ops whose outputs share the buffer of an input: who reads them, reads a ref variable itself.
ALIASING = (
    "Identity",
    "Unpack",
    "Switch",
    "Merge",
    "Loop",
    "Sequence",
    "ListSequence",
    "While",
    "Call",
) + REF_ASSIGNMENTS


@functools.lru_cache(maxsize=1 << 14)
def split(tensor):
    """The node's name and the number of the output."""
    name, _, index = tensor.partition(":")
    return name, int(index or 0)


@functools.lru_cache(maxsize=1 << 14)
def full(tensor):
    """The tensor's name as TensorFlow writes it."""
    return "{}:{}".format(*split(tensor))


def plain(op, name, inputs, dtype, after=(), **attrs):
    """A node whose shapes nobody asks for."""
    node = {"name": name, "op": op, "inputs": inputs, "after": list(after)}
    return dict(node, dtype=dtype, shapes=[], attrs=attrs)


def by_name(nodes):
    return {node["name"]: node for node in nodes}


def needed(nodes, run):
    """The names of the nodes that a run needs, as TensorFlow prunes the graph."""
    table = by_name(nodes)
    fed = {full(tensor) for tensor in run["feeds"]}
    names = set()
    waiting = [split(t)[0] for t in run["fetches"] if full(t) not in fed] + list(run["targets"])
    while waiting:
        name = waiting.pop()
        if name in names:
            continue
        names.add(name)
        if name + ":0" in fed and table[name]["op"] == "Placeholder":
            continue
        waiting += [split(t)[0] for t in table[name]["inputs"] if full(t) not in fed]
        waiting += table[name]["after"]
    return names


def liveness(nodes, run):
    """Which nodes and tensors are alive in a run: not on the dead side of a Switch.

    Returns:
      The set of the names of live nodes and live tensors ("node:0"), or None if a Merge has two
      live inputs: then the graph has no single meaning.
    """
    fed = {full(tensor) for tensor in run["feeds"]}
    alive = set(fed)
    for node in nodes:
        name, data = node["name"], [full(t) in alive for t in node["inputs"]]
        if node["op"] == "Merge":
            # What it waits for may be dead: TensorFlow's executor counts only its data.
            if sum(data) > 1:
                return None
            lives = any(data)
        else:
            lives = all(data) and all(awaited in alive for awaited in node["after"])
        if not lives:
            continue
        alive.add(name)
        outputs = range(len(node["shapes"]))
        if node["op"] == "Switch":
            outputs = [int(run["feeds"].get(full(node["inputs"][1]), {}).get("value", False))]
        alive.update(f"{name}:{k}" for k in outputs)
    return alive


def dependencies(nodes, run, tensor=None, target=None):
    """The feeds that a tensor depends on, or a target."""
    fed = {full(t): t for t in run["feeds"]}
    if tensor is not None and full(tensor) in fed:
        return {fed[full(tensor)]}
    one = dict(run, fetches=[tensor] if tensor else [], targets=[target] if target else [])
    table, found = by_name(nodes), set()
    for name in needed(nodes, one):
        read = list(table[name]["inputs"])
        if table[name]["op"] == "Placeholder":
            read.append(name)
        found.update(fed[full(t)] for t in read if full(t) in fed)
    return found


def ordered(nodes, run):
    """Whether all that reads a variable in a run is ordered against all that changes it.

    Only control edges between the two count, or those over other assignments to the variable: a
    feed may cut what is between them.
    """
    names = needed(nodes, run)
    readers, assigned = _uses([node for node in nodes if node["name"] in names])
    table = by_name(nodes)
    for variable, changes in assigned.items():
        for earlier, later in zip(changes, changes[1:]):
            if earlier not in table[later]["after"]:
                return False
        for reader in readers.get(variable, []):
            after = [k for k, change in enumerate(changes) if change in table[reader]["after"]]
            before = [k for k, change in enumerate(changes) if reader in table[change]["after"]]
            # It runs between two changes that follow one another, or before or after all.
            if max(after or [-1]) + 1 != min(before or [len(changes)]):
                return False
    return True


def _uses(nodes):
    """The readers of each variable's buffer, and the assignments to it."""
    buffers, readers, assigned = {}, {}, {}
    for node in nodes:
        name, op = node["name"], node["op"]
        shared = set().union(*[buffers.get(full(t), set()) for t in node["inputs"]])
        if op in VARIABLES:
            shared = {name}
        elif op in ASSIGNMENTS:
            variable = split(node["inputs"][0])[0]
            assigned.setdefault(variable, []).append(name)
            shared.discard(variable)
        for variable in shared - {name}:
            readers.setdefault(variable, []).append(name)
        if op in REF_ASSIGNMENTS:
            shared = {variable}
        if op in VARIABLES or shares_buffer(node):
            buffers.update({f"{name}:{k}": shared for k in range(max(1, len(node["shapes"])))})
    return readers, assigned


def shares_buffer(node):
    """Whether what reads the outputs of a node may read its inputs."""
    alone = node["op"] == "AddN" and len(node["inputs"]) == 1
    return alone or node["op"] in ALIASING + ("Slice",)


def pruned(program):
    """The program without the nodes that no run needs, and without feeds that nobody reads."""
    names = set()
    for run in program["runs"]:
        names |= needed(program["nodes"], run)
    names |= {split(t)[0] for run in program["runs"] for t in run["fetches"]}
    kept, wanted = [], set(names)
    for node in reversed(program["nodes"]):  # Also what is fed must be there, with its inputs.
        if node["name"] in wanted:
            kept.append(node)
            wanted.update([split(t)[0] for t in node["inputs"]] + node["after"])
    kept.reverse()
    left = {node["name"] for node in kept}
    runs = [_without_feeds(run, left) for run in program["runs"]]
    return dict(program, nodes=kept, runs=runs)


def _without_feeds(run, names):
    feeds = {t: value for t, value in run["feeds"].items() if split(t)[0] in names}
    stages = run["stages"]
    if stages is not None:
        stages = [dict(stage, feeds=[t for t in stage["feeds"] if t in feeds]) for stage in stages]
    return dict(run, feeds=feeds, stages=stages)


def text(program):
    """The program for people: one line a node."""
    lines = ["# seed {}".format(program["seed"])]
    lines += _lines(program["nodes"], "")
    for run in program["runs"]:
        feeds = [f"{t} = {_describe(value)}" for t, value in run["feeds"].items()]
        if run["stages"] is None:
            wanted = run["fetches"] + ["op " + name for name in run["targets"]]
            lines.append("run {}".format(", ".join(wanted)))
        else:
            lines.append("partial run")
            for stage in run["stages"]:
                feed = ", ".join(stage["feeds"]) or "nothing"
                lines.append("  feed {}; fetch {}".format(feed, ", ".join(stage["fetches"])))
        if feeds:
            lines.append("  feeds: " + "; ".join(feeds))
    return "\n".join(lines)


def _lines(nodes, indent):
    lines = []
    for node in nodes:
        attrs = dict(node["attrs"])
        body = attrs.pop("body", None)
        shown = [f"{name}={_describe(value)}" for name, value in sorted(attrs.items())]
        shapes = " ".join(str(shape) for shape in node["shapes"])
        line = "{}{} = {}({})".format(
            indent, node["name"], node["op"], ", ".join(node["inputs"] + shown)
        )
        if node["after"]:
            line += " after " + ", ".join(node["after"])
        lines.append("{}  # {} {}".format(line, node["dtype"], shapes))
        if body:
            lines += _lines(body, indent + "    ")
    return lines


def _describe(value):
    if isinstance(value, dict):
        return str(value["value"]) if "value" in value else "random{}".format(value["shape"])
    return str(value)
