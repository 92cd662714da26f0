"""Makes programs from seeds.

Most programs are what the rewrites look for, with something in the way: a control edge, a feed, a
fetch, an assignment, a Switch.
"""

import random as standard

from fuzzing import cells, chains, lists, loops, mutations, sequences, training
from fuzzing.maker import Maker
from fuzzing.programs import (
    ASSIGNMENTS,
    FRAMES,
    VARIABLES,
    by_name,
    dependencies,
    full,
    liveness,
    needed,
    ordered,
    pruned,
    split,
)

# What nobody feeds or fetches.
HIDDEN = VARIABLES + ASSIGNMENTS
# A feed cuts what a placeholder waits for; a Merge with control inputs is alive by other rules.
NEVER_WAIT = ("Placeholder", "Merge", "Switch") + VARIABLES
REWRITTEN = ("MatMul", "ConcatV2", "Slice", "BiasAddGrad", "AddN", "Add", "AddV2")


def generate(seed, functions=True):
    """The program of a seed.

    Args:
      seed: A number.
      functions: Whether TensorFlow has tf.function and loops of TensorFlow 2.
    """
    for attempt in range(100):
        random = standard.Random(f"{seed}/{attempt}")
        program = Generator(random, functions).program()
        if program is not None:
            return dict(pruned(program), seed=seed)
    raise ValueError(f"no program for the seed {seed}")


class Generator:
    def __init__(self, random, functions):
        self.functions = functions
        self.maker = Maker(random, "half" if random.random() < 0.15 else "float")
        self.pivots = []
        self.late = []
        self.sums = []
        self.batch = random.randint(1, 3)
        self.size, self.cell = random.randint(1, 4), random.randint(1, 4)

    def program(self):
        """A program, or None if it came out without meaning."""
        maker = self.maker
        if maker.chance(0.3):
            self._switch()
        for _ in range(maker.random.choice([1, 1, 1, 2])):
            self._piece()
        if maker.chance(0.3):
            mutations.mutate(maker.random, maker.nodes)
        self._control_edges()
        runs = self._runs()
        if not runs or any(liveness(maker.nodes, run) is None for run in runs):
            return None
        assert all(ordered(maker.nodes, run) for run in runs), "a variable changes while it is read"
        return {"seed": None, "nodes": maker.nodes, "runs": runs}

    # Pieces.

    def _piece(self):
        maker = self.maker
        kind = maker.random.random()
        if kind < 0.12:
            self.sums += loops.loop(maker, self.functions, self.batch, self.size, self.cell)
        elif kind < 0.18 and self.functions:
            self.sums += loops.call(maker, self.batch, self.size, self.cell)
        elif kind < 0.3:
            self.sums += sequences.sequence(maker, self.batch, self.size, self.cell)
        elif kind < 0.4:
            self.sums += lists.sequence(maker, self.batch, self.size, self.cell)
        elif kind < 0.47:
            self.sums += chains.chain(maker, self.batch, self.size, self.cell)
        elif kind < 0.54 and not any(node["op"] in FRAMES for node in maker.nodes):
            # tf.gradients does not know loops that are made of nodes.
            make = training.loop if self.functions and maker.chance(0.5) else loops.network
            self.sums += make(maker, self.batch, self.size, self.cell)
        else:
            self._cells()
        self._maybe_assign()

    def _cells(self):
        """Cells, products and sums of them."""
        maker = self.maker
        kind = cells.any_kind(maker)
        count, shared = maker.random.randint(1, 4), None
        terms = []
        for _ in range(count):
            shared = shared if shared and maker.chance(0.7) else None
            made = self._guarded_cell(kind, shared)
            shared = made[0].w
            self._maybe_assign()
            for cell in made:
                self.sums += [end for end in cell.ends if maker.chance(0.7)]
                terms += self._around(cell)
                self._maybe_assign()
        self._sums(terms)

    def _guarded_cell(self, kind, w):
        maker = self.maker
        size, cell = self.size, self.cell
        if w is None and maker.chance(0.1):
            size, cell = maker.random.randint(1, 4), maker.random.randint(1, 4)
        elif w is not None:
            cell = w.shape[1] // (2 if kind in (cells.gru, cells.plain_gru) else 4)
            size = w.shape[0] - cell
        if self.pivots and maker.chance(0.08):
            maker.guard = [maker.random.choice(maker.random.choice(self.pivots))]
        made = kind(maker, self.batch, size, cell, w)
        maker.guard = []
        return made

    def _around(self, cell):
        """The products around a cell, and what may be summed of them."""
        maker, terms = self.maker, []
        for make, share in ((cells.product, 0.85), (cells.bias, 0.35)):
            if maker.chance(share):
                terms.append(self._guarded(lambda make=make: make(maker, cell), 0.06))
        if maker.chance(0.5):
            whole = cells.transposed(maker, cell)
            made = []
            if maker.chance(0.85):
                guarded = 0.25 if self.pivots else 0.0
                made = cells.slices(maker, whole, cell.x.shape[1])
                made = [self._behind_merge(s) if maker.chance(guarded) else s for s in made]
            self.sums += made or [whole]
            if maker.chance(0.15):
                self.sums.append(whole)
        return terms

    def _sums(self, terms):
        """Sums of the terms of each shape; some terms stay alone, or have more consumers."""
        maker = self.maker
        maker.random.shuffle(terms)
        for shape in sorted({term.shape for term in terms}):
            same = [term for term in terms if term.shape == shape]
            taken = same if maker.chance(0.7) else same[: maker.random.randint(1, len(same))]
            self.sums += same[len(taken) :]
            if maker.chance(0.1):
                self.sums.append(maker.random.choice(same))
            made = self._guarded(lambda taken=taken: cells.total(maker, taken), 0.06)
            if maker.chance(0.04):
                made = cells.deep(maker, made)
            self.sums.append(made)

    # What gets in the way.

    def _switch(self):
        """A Switch whose sides other nodes can wait for."""
        maker = self.maker
        pred = maker.one("Placeholder", [], (), dtype="bool", shape=[])
        data = cells.source(maker, (self.batch, self.cell))
        sides = maker.add("Switch", [data, pred], [data.shape] * 2, hidden=True)
        hidden = maker.chance(0.7)  # Else it is data, too, and so is what may be dead.
        pivots = [maker.one("Identity", [side], side.shape, hidden=hidden) for side in sides]
        self.pivots.append([pivot.tensor for pivot in pivots])

    def _guarded(self, make, share):
        """What `make` makes, now and then behind a Merge of both sides of a Switch."""
        if not self.pivots or not self.maker.chance(share * 2):
            return make()
        return self._behind_merge(make())

    def _behind_merge(self, value):
        """Lets the node of a value wait for one side of a Switch; a Merge has the other."""
        maker = self.maker
        node = by_name(maker.nodes)[split(value.tensor)[0]]
        sides = list(maker.random.choice(self.pivots))
        maker.random.shuffle(sides)
        # The Switch comes first of all, so there is no cycle.
        node["after"] = node["after"] + [sides[0]]
        other = cells.source(maker, value.shape)
        other = maker.one("Tanh", [other], value.shape, [sides[1]], hidden=True)
        pair = [value, other]
        maker.random.shuffle(pair)
        return maker.add("Merge", pair, [value.shape, ()], hidden=True)[0]

    def _maybe_assign(self):
        maker = self.maker
        if not maker.variables or not maker.chance(0.3):
            return
        name = maker.random.choice(sorted(maker.variables))
        shape = maker.variables[name][0].shape
        there = [value for value in self.sums if value.shape == shape]
        value = maker.random.choice(there) if there else cells.source(maker, shape)
        maker.assign(name, value)

    def _control_edges(self):
        """Lets nodes wait for others that come before them, or for what is fed last."""
        maker, random = self.maker, self.maker.random
        if maker.chance(0.25):
            self.late = [maker.placeholder(()).tensor]
            maker.nodes.insert(0, maker.nodes.pop())
        may_wait = [n for n in maker.nodes if n["op"] not in NEVER_WAIT]
        rewritten = [n for n in may_wait if n["op"] in REWRITTEN] or may_wait
        before = {node["name"]: k for k, node in enumerate(maker.nodes)}
        for _ in range(random.choice([1, 1, 2, 4] if self.late else [0, 0, 1, 2, 4])):
            node = random.choice(rewritten if maker.chance(0.5) else may_wait)
            earlier = [
                n["name"] for n in maker.nodes[: before[node["name"]]] if n["op"] != "Switch"
            ]
            earlier = self.late or earlier
            chosen = random.choice(earlier) if earlier else None
            if chosen and chosen not in node["after"]:
                node["after"].append(chosen)

    # Runs.

    def _runs(self):
        maker = self.maker
        runs = [self._run() for _ in range(maker.random.choice([1, 1, 1, 2]))]
        if None in runs:
            return None
        read = self._last_reads()
        if read:
            runs.append({"feeds": {}, "fetches": read, "targets": [], "stages": None})
        return runs

    def _last_reads(self):
        """What all variables are in the end, in a run where nothing changes them."""
        maker = self.maker
        assigned = {
            split(node["inputs"][0])[0] for node in maker.nodes if node["op"] in ASSIGNMENTS
        }
        read = []
        for name in sorted(assigned):
            made, resource = maker.variables[name]
            if resource:
                made = maker.one("ReadVariableOp", [made], made.shape, hidden=True)
            read.append(made.tensor)
        return read

    def _run(self):
        maker = self.maker
        run = {"feeds": {}, "fetches": [], "targets": [], "stages": None}
        for node in maker.nodes:
            if node["op"] == "Placeholder":
                run["feeds"][full(node["name"])] = self._feed(node)
        alive = liveness(maker.nodes, run)
        if alive is None or not self._choose_fetches(run, alive):
            return None
        if maker.chance(0.25):
            self._feed_inside(run)
        used = self._used_feeds(run)
        run["feeds"] = {t: value for t, value in run["feeds"].items() if t in used}
        if maker.chance(0.7 if set(self.late) & set(map(_name, used)) else 0.15) and used:
            self._into_stages(run)
        return run

    def _feed(self, node):
        if node["dtype"] == "bool":
            return {"value": self.maker.chance(0.5)}
        if node["dtype"] == "int32":
            return {"value": [self.maker.random.randint(0, 4) for _ in range(node["shapes"][0][0])]}
        return self.maker.array(node["shapes"][0])

    def _choose_fetches(self, run, alive):
        """Sums, things inside, and operations as targets."""
        maker, random = self.maker, self.maker.random
        fed = {full(tensor) for tensor in run["feeds"]}
        free = alive - fed  # TensorFlow refuses to fetch what is fed.
        can = lambda v: full(v.tensor) in free and not maker.shares_buffer(v)  # noqa: E731
        last = [value for value in self.sums if can(value)]
        inside = [value for value in maker.values if can(value)]
        chosen = random.sample(last, min(len(last), random.randint(1, 4)))
        if maker.chance(0.3) and inside:
            chosen.append(random.choice(inside))
        run["fetches"] = sorted({value.tensor for value in chosen})
        ops = [node["name"] for node in maker.nodes if node["op"] in ASSIGNMENTS]
        if ops and maker.chance(0.7):
            run["targets"].append(random.choice(ops))
        if maker.chance(0.1):
            nodes = [node for node in maker.nodes if node["op"] != "Placeholder"]
            run["targets"].append(random.choice(nodes)["name"])
        return bool(chosen)

    def _feed_inside(self, run):
        """Feeds a tensor that a node computes."""
        maker = self.maker
        names, table = needed(maker.nodes, run), by_name(maker.nodes)
        numbers = [
            node
            for node in maker.nodes
            if node["dtype"] == "int32" and node["op"] == "Const" and node["name"] in names
        ]
        if numbers and maker.chance(0.2):
            # What it is anyway: nothing can rely on it.
            node = maker.random.choice(numbers)
            run["feeds"][full(node["name"])] = node["attrs"]["value"]
            return
        inside = [
            value
            for value in maker.values
            if split(value.tensor)[0] in names
            and table[split(value.tensor)[0]]["op"] not in HIDDEN
            and value.tensor not in run["fetches"]
        ]
        if inside:
            value = maker.random.choice(inside)
            run["feeds"][full(value.tensor)] = maker.array(value.shape)
            if liveness(maker.nodes, run) is None:
                del run["feeds"][full(value.tensor)]

    def _used_feeds(self, run):
        """What the fetches and targets of a run depend on."""
        nodes = self.maker.nodes
        used = set()
        for tensor in run["fetches"]:
            used |= dependencies(nodes, run, tensor)
        for name in run["targets"]:
            used |= dependencies(nodes, run, target=name)
        return used

    def _into_stages(self, run):
        """Makes it a partial run: what is fed comes in two or three calls."""
        maker, count = self.maker, self.maker.random.randint(2, 3)
        feeds = sorted(run["feeds"])
        stage_of = {t: maker.random.randrange(count) for t in feeds}
        stage_of.update({t: count - 1 for t in feeds if _name(t) in self.late})
        stages = [{"feeds": [], "fetches": []} for _ in range(count)]
        for tensor in feeds:
            stages[stage_of[tensor]]["feeds"].append(tensor)
        for tensor in run["fetches"]:
            depends = dependencies(maker.nodes, run, tensor)
            first = max([stage_of[t] for t in depends] or [0])
            last = first if maker.chance(0.8) else count - 1
            stages[last]["fetches"].append(tensor)
        run["targets"] = []
        run["stages"] = [stage for stage in stages if stage["feeds"] or stage["fetches"]]


def _name(tensor):
    return split(tensor)[0]
