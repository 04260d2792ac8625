"""The Pulumi policy pack: `pulumi preview --policy-pack policies` runs the rules that `gpuyard check` runs."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

# Pulumi starts this file with policies/ as working directory; the packages are one folder up.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pulumi_policy import PolicyPack

from gpuyard.model.load import environments
from gpuyard.pulumi.policy import policies
from gpuyard.rules import Context

# By name, as the command line does it: rules stand below what puts the project together and never import it.
project = importlib.import_module("infra.assemble")

# From there, messages name files as a person does who works in the project: stacks/prod/...
os.chdir(project.ROOT)
STACKS = Path("stacks")


def render(name: str) -> Context:
    """Return what the rules look at in an environment."""
    environment = project.load(name, STACKS)
    return project.context(environment, project.build(environment))


PolicyPack("gpuyard", policies(project.rules(), lambda: environments(STACKS), render))
