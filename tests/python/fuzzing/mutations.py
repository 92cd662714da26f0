"""Near misses: a graph of small operations in which one edge, or one constant, is another one."""

from fuzzing.programs import ALIASING, VARIABLES, full

# What patterns are made of. All but the first three work element by element.
SMALL = ("BiasAdd", "ConcatV2", "MatMul") + (
    "Add",
    "AddN",
    "AddV2",
    "Maximum",
    "Minimum",
    "Mul",
    "Neg",
    "Sigmoid",
    "SigmoidGrad",
    "Sub",
    "Tanh",
    "TanhGrad",
)
# What an edge goes through, with so many times the tensor as inputs.
BETWEEN = (("Neg", 1), ("Sigmoid", 1), ("Mul", 2), ("AddV2", 2), ("AddN", 2), ("AddN", 3))


def mutate(random, nodes):
    """Changes one node of a program, or of a body in it, so that all shapes stay as they are."""
    bodies = [node["attrs"]["body"] for node in nodes if "body" in node["attrs"]]
    inside = random.choice([nodes, *bodies])
    places = [k for k, node in enumerate(inside) if node["op"] in SMALL]
    if not places:
        return
    place = random.choice(places)
    node, known = inside[place], _tensors(inside[:place])
    edges = [k for k, tensor in enumerate(node["inputs"]) if full(tensor) in known]
    if node["op"] in SMALL[3:] and len(node["inputs"]) > 1 and random.random() < 0.2:
        first, second = random.sample(range(len(node["inputs"])), 2)
        inputs = node["inputs"]
        inputs[first], inputs[second] = inputs[second], inputs[first]
    elif edges:
        edge = random.choice(edges)
        new = _another(random, inside, node["inputs"][edge], known)
        inside[place:place] = new
        if new:
            node["inputs"][edge] = new[-1]["name"]
        else:
            same = known[full(node["inputs"][edge])]["shape"], node["dtype"]
            others = [t for t, one in known.items() if (one["shape"], one["dtype"]) == same]
            node["inputs"][edge] = random.choice(sorted(others))


def _tensors(nodes):
    """Tensors that are no variable's memory, by name: their shapes, types, and the constants."""
    known = {}
    for node in nodes:
        if node["op"] not in VARIABLES + ALIASING + ("Slice",):
            for k, shape in enumerate(node["shapes"]):
                tensor = {"shape": tuple(shape), "dtype": node["dtype"], "node": node}
                known[f"{node['name']}:{k}"] = tensor
    return {name: one for name, one in known.items() if one["dtype"] in ("float", "half")}


def _another(random, nodes, tensor, known):
    """New nodes, the last of which takes the place of a tensor; none for a tensor that is there."""
    one = known[full(tensor)]
    kind = random.random()
    if kind < 0.35:
        return []
    name = "mutant_{}".format(sum(node["name"].startswith("mutant") for node in nodes))
    new = {"name": name, "op": "", "inputs": [], "after": [], "attrs": {}}
    new.update(dtype=one["dtype"], shapes=[list(one["shape"])])
    constant = one["node"]["attrs"].get("value", {}).get("value")
    if isinstance(constant, float) and kind < 0.8:
        value = random.choice([constant * (1 + 2**-9), -constant, constant / 2, constant + 0.25])
        return [
            dict(new, op="Const", after=one["node"]["after"], attrs={"value": {"value": value}})
        ]
    op, count = random.choice(BETWEEN)
    return [dict(new, op=op, inputs=[tensor] * count)]
