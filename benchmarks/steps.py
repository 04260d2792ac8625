"""One cold process that takes an environment through some steps and prints the CPU seconds of each, as JSON.

python -m benchmarks.steps STACKS JOBS NODES check BASE | base BASE | pyyaml | pulumi | documents FOLDER
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.workload import environment
from gpuyard.manifests.yaml.emit import each_yaml, to_yaml
from gpuyard.rules import Rules
from infra import assemble

T = TypeVar("T")

ADDED = 10
"""Jobs that the environment has and its base has not."""


def main(stacks: Path, jobs: int, nodes: int, what: str, *rest: str) -> None:
    # As `gpuyard diff` does: nearly all that is made here lives until the end.
    gc.disable()
    took: dict[str, float] = {"start": time.process_time()}

    def timed(step: str, work: Callable[[], T]) -> T:
        start = time.process_time()
        result = work()
        took[step] = took.get(step, 0) + time.process_time() - start
        return result

    loaded = timed("models", lambda: environment(stacks, jobs - ADDED if what == "base" else jobs, nodes))
    built = timed("build", lambda: assemble.build(loaded, allow_missing=True))
    manifests = [rendered.manifest for rendered in built.objects]
    result: dict[str, Any] = {"objects": len(manifests)}
    if what == "check":
        context = assemble.context(loaded, built)
        for rule in assemble.rules().rules.values():
            alone = Rules({rule.id: rule})
            found = timed("schema" if rule.id == "schema" else "rules", lambda alone=alone: alone.judge(context))
            if found.findings:
                raise SystemExit(f"the measured environment is not clean: {found.findings[0]}")
        # As `gpuyard render` writes it.
        timed("yaml", lambda: sum(map(len, each_yaml(manifests))))
        result["changes"] = timed("diff", lambda: _changes(Path(rest[0]), built.objects))
    elif what == "base":
        from gpuyard.diff.state import describe, to_lines

        with Path(rest[0]).open("w") as file:
            file.writelines(f"{line}\n" for line in to_lines(describe(loaded, built)))
    elif what == "pyyaml":
        timed("pyyaml", lambda: _pyyaml([one for one in manifests if one["kind"] != "PyTorchJob"]))
        others = took["pyyaml"]
        written = timed("pyyaml", lambda: _pyyaml([one for one in manifests if one["kind"] == "PyTorchJob"]))
        # Characters a second, of jobs alone.
        result["speed"] = written / (took["pyyaml"] - others)
    elif what == "pulumi":
        timed("yaml", lambda: to_yaml(manifests))
        timed("pulumi", lambda: _pulumi(built.objects))
    elif what == "documents":
        write_documents(Path(rest[0]), manifests)
    result["mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**result, "took": took}))


def _changes(base: Path, objects: list[Any]) -> int:
    """Read the base, as `gpuyard diff` gets it from the base's own code, and compare."""
    from gpuyard.diff.state import from_lines
    from gpuyard.manifests.diff import compare

    with base.open() as file:
        return len(compare(from_lines(file, objects).objects, objects))


def _pyyaml(manifests: list[dict[str, Any]]) -> int:
    """Write the manifests with PyYAML's C dumper and return how many characters these are."""
    import yaml

    class Dumper(yaml.CSafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            # Parts that objects share are written out everywhere, as in ours.
            return True

    return len(yaml.dump_all(manifests, Dumper=Dumper, sort_keys=False))


def _pulumi(objects: list[Any]) -> None:
    """Register the objects with Pulumi's mocks, without options: less than any program would do."""
    import pulumi

    from gpuyard.pulumi.register import resource_name, resource_type
    from gpuyard.pulumi.testing import run

    def program() -> None:
        for rendered in objects:
            pulumi.CustomResource(resource_type(rendered), resource_name(rendered), rendered.manifest)

    run(program, stack="prod", timeout=600)


def write_documents(folder: Path, manifests: list[dict[str, Any]]) -> None:
    """Write the documents for kustomize, with and without CRDs, and its jobs as a chart for helm."""
    own = [one for one in manifests if one["kind"] != "CustomResourceDefinition"]
    for name, documents in (("all", manifests), ("own", own)):
        (folder / name).mkdir(parents=True)
        (folder / name / "all.yaml").write_text(to_yaml(documents))
        (folder / name / "kustomization.yaml").write_text("resources: [all.yaml]\n")
    jobs = [one for one in manifests if one["kind"] == "PyTorchJob"]
    if jobs:
        chart = folder / "chart"
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: jobs\nversion: 1.0.0\n")
        body = to_yaml(jobs[:1]).replace("train-00000", '{{ printf "train-%05d" $number }}')
        text = f"{{{{- range $number := until {len(jobs)} }}}}\n---\n{body}{{{{- end }}}}\n"
        (chart / "templates" / "jobs.yaml").write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
