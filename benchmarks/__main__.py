"""Measures gpuyard against the tools that it replaces, and says whether it meets its bars.

    python -m benchmarks [--short] [--out FILE]

CPU time (user and system) of cold processes, in turns, medians. Ratios of times from one run mean something on any
machine, seconds do not: those of the one bar in seconds are of the machine for which it was set. Exit code 1 when a bar
is not met.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.steps import write_documents
from benchmarks.workload import NAME, write_stacks
from gpuyard.cache import cache_dir
from infra import assemble

SIZES = (300, 1_200, 10_200)
STEPS = ("build", "schema", "rules", "yaml", "diff")
STEPS_OF_4, STEPS_OF_1 = "steps, jobs of four nodes", "steps, jobs of one node"
"""The same environment with jobs that make 8 kB of YAML each, and with jobs that make 3.6 kB."""
ROUNDS, SHORT_ROUNDS = 5, 3
PYYAML = 6.6e6
"""Characters a second of PyYAML's C dumper on the machine for which the bar in seconds was set."""
GPUYARD = [Path(sys.executable).with_name("gpuyard"), "check", NAME, "--allow-missing-sources"]


class Bar(NamedTuple):
    """One thing promised. value: None where the tool to compare with is not there."""

    what: str
    value: float | None
    limit: float
    unit: str = "x"
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.value is None or (self.value >= self.limit if self.at_least else self.value <= self.limit)


class Run(NamedTuple):
    """CPU seconds of one process, and what it printed if that is JSON."""

    cpu: float
    said: dict[str, Any]


def run(command: Sequence[str | Path]) -> Run:
    """Run a command from the project's folder and return its CPU time. Exits when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(list(map(str, command)), cwd=assemble.ROOT, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\nends with {done.returncode}\n{done.stdout}{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(cpu, json.loads(done.stdout) if done.stdout.startswith('{"objects"') else {})


def in_turns(commands: Mapping[str, Sequence[str | Path]], rounds: int) -> dict[str, list[Run]]:
    """Run every command once in each round, so that a slow minute of the machine hits all of them."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(run(command))
            print(f"  {name:28}{runs[name][-1].cpu:8.2f} s", file=sys.stderr)
    return runs


class Turn(NamedTuple):
    """What one turn through the sizes says. A machine changes its speed from minute to minute, so each turn is judged.

    seconds_of_1, seconds_of_4: for 1,000 jobs more of one node and of four, on the machine of the bar.
    speed: of this machine, to that of the bar.
    ratio: of 10,000 jobs to 1,000.
    yaml:  of PyYAML's C dumper to ours.
    """

    seconds_of_1: float
    seconds_of_4: float
    speed: float
    ratio: float
    yaml: float

    @classmethod
    def of(cls, runs: Mapping[int, Mapping[str, Sequence[Run]]], index: int) -> Turn:
        _, middle, large = SIZES

        def whole(what: str, size: int) -> float:
            return sum(runs[size][what][index].said["took"][step] for step in STEPS)

        def more(what: str) -> float:
            return (whole(what, large) - whole(what, middle)) / (large - middle) * 1000

        pyyaml = runs[middle]["pyyaml"][index].said
        # What PyYAML does in a second here, to what it did there: so much faster is this machine.
        speed = pyyaml["speed"] / PYYAML
        return cls(
            seconds_of_1=more(STEPS_OF_1) * speed,
            seconds_of_4=more(STEPS_OF_4) * speed,
            speed=speed,
            ratio=whole(STEPS_OF_4, large) / whole(STEPS_OF_4, middle),
            yaml=pyyaml["took"]["pyyaml"] / runs[middle][STEPS_OF_4][index].said["took"]["yaml"],
        )


def cpu(runs: Mapping[str, list[Run]], name: str) -> float | None:
    return median(one.cpu for one in runs[name]) if name in runs else None


def steps(runs: Sequence[Run]) -> dict[str, float]:
    """Return the median of each step."""
    return {step: median(one.said["took"][step] for one in runs) for step in runs[0].said["took"]}


def more_of(few: Mapping[str, float], many: Mapping[str, float], jobs: int) -> dict[str, float]:
    """Return the seconds that each step takes for 1,000 jobs more."""
    return {step: (many[step] - few[step]) / jobs * 1000 for step in few}


def ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one / other


def measure(work: Path, short: bool) -> tuple[list[Bar], dict[str, Any]]:
    """Run everything and return the bars and all numbers. `short`: fewer rounds, and only what a bar needs."""
    kubectl = shutil.which("kubectl")
    helm = shutil.which("helm") or next(map(str, cache_dir("binaries").glob("*/helm")), None)
    stacks = write_stacks(work / "empty", 0)

    def step(jobs: int, *what: str | Path, nodes: int = 4) -> list[str | Path]:
        return [sys.executable, "-m", "benchmarks.steps", stacks, str(jobs), str(nodes), *what]

    # The first run also fills the caches: what is measured is warm.
    platform = run(step(0, "documents", work / "platform")).said["objects"]
    jobs = {size: size - platform for size in SIZES}
    runs: dict[int, dict[str, list[Run]]] = {}
    for size in SIZES:
        print(f"{size} objects", file=sys.stderr)
        folder = work / str(size)
        run(step(jobs[size], "documents", folder))
        run(step(jobs[size], "base", folder / "base.json"))
        commands: dict[str, Sequence[str | Path]] = {}
        if size == SIZES[0]:
            commands[STEPS_OF_4] = step(jobs[size], "check", folder / "base.json")
            commands["check"] = [*GPUYARD, "--stacks", write_stacks(folder, jobs[size])]
        if size != SIZES[0]:
            run(step(jobs[size], "base", folder / "base-1.json", nodes=1))
        if size == SIZES[1] or (size == SIZES[0] and not short):
            commands["pulumi"] = step(jobs[size], "pulumi")
        # kustomize is quadratic: 10,000 objects take it minutes.
        if kubectl and (size == SIZES[0] or (size == SIZES[1] and not short)):
            commands |= {f"kustomize {of}": [kubectl, "kustomize", folder / of] for of in ("all", "own")}
        if helm and not short:
            commands["helm, jobs alone"] = [helm, "template", "jobs", folder / "chart"]
        runs[size] = in_turns(commands, 1 if short else ROUNDS)
        if size == SIZES[2] and not short:
            # They take minutes, and their own noise is little against that.
            runs[size] |= in_turns({what: step(jobs[size], what) for what in ("pyyaml", "pulumi")}, 1)
    # What is compared from one size to another takes turns, too.
    print("sizes in turns", file=sys.stderr)
    turns: dict[str, Sequence[str | Path]] = {
        f"{what}, {size}": step(jobs[size], "check", work / str(size) / base, nodes=nodes)
        for what, nodes, base in ((STEPS_OF_4, 4, "base.json"), (STEPS_OF_1, 1, "base-1.json"))
        for size in SIZES[1:]
    }
    turns |= {f"pyyaml, {size}": step(jobs[size], "pyyaml") for size in SIZES[:2]}
    for name, found in in_turns(turns, SHORT_ROUNDS if short else ROUNDS).items():
        what, _, size = name.rpartition(", ")
        runs[int(size)][what] = [*found, *runs[int(size)].get(what, [])]
    print("shipped prod", file=sys.stderr)
    run(GPUYARD)
    shipped = assemble.build(assemble.load(NAME, assemble.ROOT / "stacks"), allow_missing=True)
    write_documents(work / "shipped", [rendered.manifest for rendered in shipped.objects])
    prod: dict[str, Sequence[str | Path]] = {"check": GPUYARD}
    if kubectl:
        prod["kustomize all"] = [kubectl, "kustomize", work / "shipped" / "all"]
    runs[0] = in_turns(prod, 1 if short else ROUNDS)

    small, middle, large = SIZES
    took = {size: steps(runs[size][STEPS_OF_4]) for size in SIZES}
    # Render and Pulumi in one process, one after the other.
    pulumi = [one.said["took"] for one in runs[middle]["pulumi"]]
    kustomize = {size: cpu(runs[size], "kustomize all") for size in (0, small)}
    more = {
        what: more_of(steps(runs[middle][what]), steps(runs[large][what]), large - middle)
        for what in (STEPS_OF_4, STEPS_OF_1)
    }
    more["pyyaml"] = more_of(steps(runs[small]["pyyaml"]), steps(runs[middle]["pyyaml"]), middle - small)
    turn = [Turn.of(runs, index) for index in range(SHORT_ROUNDS if short else ROUNDS)]
    bars = [
        Bar("check of 300 objects / kubectl kustomize", ratio(cpu(runs[small], "check"), kustomize[small]), 0.5),
        Bar("check of shipped prod / kubectl kustomize", ratio(cpu(runs[0], "check"), kustomize[0]), 2),
        # It was set for jobs of 1.9 kB. Those of one node are the nearest.
        Bar("1,000 jobs more: build to diff, machine of the bar", median(one.seconds_of_1 for one in turn), 0.2, " s"),
        Bar("10,000 jobs / 1,000 jobs: build to diff", median(one.ratio for one in turn), 11),
        Bar("peak memory at 10,000 jobs", max(one.said["mib"] for one in runs[large][STEPS_OF_4]), 300, " MiB"),
        Bar("PyYAML's C dumper / our YAML", median(one.yaml for one in turn), 5, at_least=True),
        Bar(
            "Pulumi mocks / our render",
            median(one["pulumi"] / (one["build"] + one["yaml"]) for one in pulumi),
            20,
            at_least=True,
        ),
    ]
    numbers = {
        "objects": {str(size): runs[size][STEPS_OF_4][0].said["objects"] for size in SIZES},
        "steps": {str(size): took[size] for size in SIZES},
        "1,000 jobs more": more,
        "machine of the bar": {
            STEPS_OF_1: median(one.seconds_of_1 for one in turn),
            STEPS_OF_4: median(one.seconds_of_4 for one in turn),
        },
        "speed": median(one.speed for one in turn),
        "cpu": {
            str(size) if size else "shipped prod": {name: cpu(of_size, name) for name in of_size}
            for size, of_size in runs.items()
        },
        "skipped": list(shipped.skipped),
        "missing": [name for name, found in (("kubectl", kubectl), ("helm", helm)) if not found],
    }
    return bars, numbers


def show(bars: Sequence[Bar], numbers: Mapping[str, Any]) -> None:
    """Print where the time goes, what the tools take, and the bars."""
    columns = list(numbers["steps"])
    print(f"\n{'CPU seconds of gpuyard, by step':42}" + "".join(f"{column:>12}" for column in columns))
    for step in ("start", "models", *STEPS):
        print(f"  {step:40}" + "".join(f"{numbers['steps'][column][step]:12.3f}" for column in columns))
    more = numbers["1,000 jobs more"]
    print(f"\n{'CPU seconds of 1,000 jobs more':42}{'of one node':>14}{'of four nodes':>16}")
    for step in STEPS:
        print(f"  {step:40}{more[STEPS_OF_1][step]:14.3f}{more[STEPS_OF_4][step]:16.3f}")
    there = numbers["machine of the bar"]
    whole = {what: sum(more[what][step] for step in STEPS) for what in there}
    print(f"  {'build to diff':40}{whole[STEPS_OF_1]:14.3f}{whole[STEPS_OF_4]:16.3f}")
    print(f"  {'  on the machine of the bar':40}{there[STEPS_OF_1]:14.3f}{there[STEPS_OF_4]:16.3f}")
    alone, speed = more["pyyaml"]["pyyaml"], numbers["speed"]
    print(f"  {'PyYAML alone':40}{'':14}{alone:16.3f}   this machine has {speed:.2f} of its speed")
    columns = list(numbers["cpu"])
    print(f"\n{'CPU seconds of a whole cold process':42}" + "".join(f"{column:>14}" for column in columns))
    for tool in dict.fromkeys(tool for column in columns for tool in numbers["cpu"][column]):
        values = [numbers["cpu"][column].get(tool) for column in columns]
        print(f"  {tool:40}" + "".join("             -" if value is None else f"{value:14.2f}" for value in values))
    if "kubectl" not in numbers["missing"]:
        print("  kustomize is quadratic: at 10,200 objects it takes many minutes, and is not measured")
    for tool in numbers["missing"]:
        print(f"  {tool} is not on this machine: not measured")
    if numbers["skipped"]:
        print(f"  without {', '.join(numbers['skipped'])}, not in the cache; gpuyard sources pull")
    print(f"\n{'Bars':54}{'measured':>12}{'bar':>14}")
    for bar in bars:
        value = "-" if bar.value is None else f"{bar.value:.2f}{bar.unit}"
        limit = f"{'>=' if bar.at_least else '<='} {bar.limit:g}{bar.unit}"
        verdict = "not measured" if bar.value is None else "met" if bar.met else "NOT MET"
        print(f"  {bar.what:52}{value:>12}{limit:>14}   {verdict}")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure gpuyard, in one run and as ratios."
    )
    parser.add_argument("--short", action="store_true", help="fewer rounds, and only what the bars need: for CI")
    parser.add_argument("--out", type=Path, help="write all numbers to this file, as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bars, numbers = measure(Path(folder), options.short)
    show(bars, numbers)
    if options.out:
        found = [{**bar._asdict(), "met": bar.met} for bar in bars]
        options.out.write_text(json.dumps({"bars": found, **numbers}, indent=2) + "\n")
    return int(not all(bar.met for bar in bars))


if __name__ == "__main__":
    sys.exit(main())
