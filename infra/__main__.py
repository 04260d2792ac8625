"""The Pulumi program: one stack for each layer of an environment, told by the stack's name."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Pulumi starts this file with infra/ as working directory and first on the path; the packages are one folder up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pulumi

from gpuyard.errors import InputError
from gpuyard.model.load import environments
from gpuyard.pulumi.cluster import LiveCluster
from gpuyard.pulumi.program import deploy
from infra import assemble
from infra.resources import component_classes

# From there, messages name files as a person does who works in the project: stacks/prod/...
os.chdir(assemble.ROOT)
STACKS = Path("stacks")

try:
    deploy(
        pulumi.get_stack(),
        stacks=STACKS,
        environments=environments(STACKS),
        render=lambda name: assemble.build(assemble.load(name, STACKS)).objects,
        components=component_classes(),
        cluster=LiveCluster(),
    )
except InputError as error:
    # Pulumi shows a RunError without a traceback.
    raise pulumi.RunError(str(error)) from None
