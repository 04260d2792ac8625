"""What is measured: the shipped prod with generated jobs in place of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml

from gpuyard.errors import Origin
from gpuyard.model.environment import Environment
from gpuyard.model.layers import Written
from infra import assemble

NAME = "prod"

_JOB = """\
name: {name}
team: vision
kind: pytorch
image: registry.acme.com/vision/resnet@sha256:d7ab393d3a3e0a75d6a914d3cbe61866d3a1ca1a19e38311835094b3e11a58ef
command: [torchrun, train.py, --epochs, "90", --seed, "{number}"]
nodes: {nodes}
gpus: 8
pools: [h100]
data: [imagenet]
priority: research
env:
  WANDB_PROJECT: {name}
  WANDB_API_KEY: {{secret: wandb, key: api-key}}
"""
"""A training job. Each makes one object: of four nodes 8 kB of YAML, of one node 3.6 kB."""


def job_text(number: int, nodes: int = 4) -> str:
    return _JOB.format(name=f"train-{number:05d}", number=number, nodes=nodes)


def write_stacks(folder: Path, jobs: int) -> Path:
    """Write a stacks folder with a file for each job."""
    stacks = folder / "stacks"
    shutil.copytree(assemble.ROOT / "stacks", stacks, ignore=shutil.ignore_patterns("jobs"))
    (stacks / NAME / "jobs").mkdir()
    for number in range(jobs):
        (stacks / NAME / "jobs" / f"train-{number:05d}.yaml").write_text(job_text(number))
    return stacks


def environment(stacks: Path, jobs: int, nodes: int = 4) -> Environment:
    """Return the environment of a stacks folder without jobs, with so many jobs as if their files had been read."""
    loaded = assemble.load(NAME, stacks)
    model = assemble.registry().kinds["pytorch"].model
    for number in range(jobs):
        written = yaml.load(job_text(number, nodes), Loader=yaml.CSafeLoader)
        name = written["name"]
        loaded.jobs[name] = model.model_validate(written)
        origin = Origin(f"jobs/{name}.yaml", 1)
        loaded.written["jobs", name] = [Written(origin, written)]
        loaded.written |= {("jobs", name, field): [Written(origin, value)] for field, value in written.items()}
    return loaded
