"""What the machine is, and what it can do at best."""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, NamedTuple

from blockcell import building
from blockcell_tools.bench.workers import environment_of


class MachineError(Exception):
    """The machine's limits cannot be measured; says why."""


class Limits(NamedTuple):
    """What some number of threads can do at best."""

    flops_per_second: float
    bytes_per_second: Dict[int, float]
    """Bandwidth by the size of the working set in bytes."""

    def bandwidth(self, working_set):
        """Bytes a second at a working set; between those measured, on a line through them."""
        import numpy as np  # Not above: `blockcell info` works without it.

        sizes = sorted(self.bytes_per_second)
        rates = [self.bytes_per_second[size] for size in sizes]
        return float(np.interp(np.log(working_set), np.log(sizes), rates))

    def cores(self, of_one):
        """How many real cores the threads have, by the arithmetic of one thread, another `Limits`.

        Virtual processors that share a core share its multiply-adds.
        """
        return self.flops_per_second / of_one.flops_per_second

    def floor(self, case):
        """Seconds that a case (`blockcell_tools.bench.ops.Workload`) takes at least."""
        return max(case.flops / self.flops_per_second, case.bytes / self.bandwidth(case.bytes))

    def best_of(self, other):
        """The better of two measurements of the same limits."""
        return Limits(
            max(self.flops_per_second, other.flops_per_second),
            {
                size: max(rate, other.bytes_per_second[size])
                for size, rate in self.bytes_per_second.items()
            },
        )


def measure_limits(threads):
    """Measures the limits of each number of threads, by `kernels/examples/machine.rs`.

    cargo builds it, in a source tree or from the sources that a wheel carries.

    Args:
      threads: Numbers of threads.

    Returns:
      A dictionary of `Limits` by number of threads; None where there is no cargo, or no
      sources.

    Raises:
      MachineError: The program does not build or run.
    """
    tree = building.source_tree()
    if tree is None or shutil.which("cargo") is None:
        return None
    target = building.target_of(tree)
    command = ["cargo", "run", "--locked", "--package", "blockcell-kernels", "--release"]
    command += ["--quiet", "--example", "machine", "--target-dir", str(target)]
    command += building.flags_of_cargo(target)
    command += ["--", "--threads", ",".join(map(str, threads))]
    try:
        output = subprocess.run(command, cwd=str(tree), stdout=subprocess.PIPE, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise MachineError(
            "kernels/examples/machine.rs does not build or run: see above"
        ) from error
    limits = {}
    for measured in json.loads(output.decode())["limits"]:
        rates = {rate["bytes"]: rate["bytes_per_second"] for rate in measured["read"]}
        limits[measured["threads"]] = Limits(measured["flops_per_second"], rates)
    return {number: limits[number] for number in threads}


class Neighbours:
    """How many cores other processes use, on average since it was made.

    A neighbour that is always there slows every round alike: the spread of the times does not
    show it, and a row at two threads may in truth have had one core.
    """

    def __init__(self):
        """Starts to count."""
        self._start = _processor_seconds()

    def spent(self):
        """Seconds that others used processors, and that passed; None without /proc/stat."""
        if self._start is None:
            return None
        busy, own, clock = (now - then for now, then in zip(_processor_seconds(), self._start))
        return busy - own, clock

    def cores(self):
        """Cores in use by others, or None where the system does not tell (no /proc/stat)."""
        return cores_of([self.spent()])


def cores_of(spent):
    """Cores in use by others, given what `Neighbours.spent` returned; None if it did not know."""
    if None in spent:
        return None
    return max(0.0, sum(others for others, _ in spent) / sum(clock for _, clock in spent))


def _processor_seconds():
    """Seconds that all processes, and this one, have used processors, and the time."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
    except OSError:
        return None
    # user, nice, system, idle, iowait, irq, softirq, steal: all but the fourth and fifth are work,
    # the last one work of other virtual machines.
    ticks = [int(count) for count in first.split()[1:9]]
    busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    own = os.times()
    return busy, own.user + own.system, time.perf_counter()


def resident():
    """Resident memory of this process in bytes: `VmRSS`, of now, and `VmHWM`, at its highest."""
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {name: int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")}


def describe():
    """What tells this machine from another: processor, cores, system, and how busy it is."""
    fields = _cpu_fields()
    return {
        "cpu": _cpu_model(fields),
        "is_virtual": "hypervisor" in fields.get("flags", "").split(),
        "cores": len(os.sched_getaffinity(0)),
        "real_cores": real_cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_average": round(os.getloadavg()[0], 2),
    }


def in_words(machine):
    """A line on a machine as `describe` describes it, or did in files that are older."""
    virtual = ", a virtual machine" if machine.get("is_virtual") else ""
    words = f"{machine['cpu']}{virtual}, {machine['cores']} cores"
    if machine.get("real_cores"):
        words += f" with {machine['real_cores']:.1f} times the multiply-adds of one"
    return f"{words}, {machine['system']}"


def real_cores():
    """How many times the arithmetic of one thread all processors do, if NumPy can tell."""
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "blockcell_tools.bench.cores"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    done = subprocess.run(command, env=environment_of(**one), **options)
    return float(done.stdout) if done.returncode == 0 else None


def commit():
    """The commit of the source tree that this package is used from, if it is one of git's."""
    tree = building.source_tree()
    if tree is None or not (tree / ".git").exists() or shutil.which("git") is None:
        return None
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "cwd": str(tree)}
    done = subprocess.run(["git", "describe", "--always", "--dirty"], **options)
    return done.stdout.decode().strip() or None


def _cpu_fields():
    """What the system says of the last processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _cpu_model(fields):
    model = fields.get("model name", platform.processor() or "unknown")
    numbers = [f"{key} {fields[key]}" for key in ("cpu family", "model") if key in fields]
    # Virtual machines often hide the model's name, but not its number.
    return f"{model} ({', '.join(numbers)})" if numbers else model
