"""What a job says about its gang is read by the operator and by the scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from gpuyard.manifests import Identity, Rendered
from gpuyard.manifests.data import at, below
from gpuyard.rules import Context, Hit, Rule, Unjudged
from policies.shared.gangs import gangs, policy_path

# Names as the upstream manifests of both systems give them, and the entries of the lock that bring them.
OPERATOR, OPERATOR_SOURCE = "training-operator", "training-operator"
SCHEDULER, SCHEDULER_SOURCE = "volcano-scheduler", "volcano"
FLAG, GANG_SCHEDULER = "--gang-scheduler-name", "volcano"
CONFIG_KEY = "volcano-scheduler.conf"
POD_GROUPS = Identity("apiextensions.k8s.io", "CustomResourceDefinition", "", "podgroups.scheduling.volcano.sh")

CONTAINERS = ("spec", "template", "spec", "containers")


def check(context: Context) -> Iterator[Hit | Unjudged]:
    found = [gang for gang in gangs(context).values() if gang.policy is not None]
    if not found:
        return
    first, jobs = found[0].rendered, f"{len(found)} job{'s' if len(found) > 1 else ''} with schedulingPolicy"
    if OPERATOR_SOURCE in context.skipped:
        yield Unjudged(jobs, f"the training operator is in the source {OPERATOR_SOURCE}, which was left out")
    else:
        yield from _operator(context, first, jobs)
    if SCHEDULER_SOURCE in context.skipped:
        yield Unjudged(jobs, f"the gang scheduler is in the source {SCHEDULER_SOURCE}, which was left out")
    else:
        yield from _scheduler(context, first, jobs)


def _operator(context: Context, first: Rendered, jobs: str) -> Iterator[Hit]:
    operator = _deployment(context, OPERATOR)
    if not operator:
        message = f"nothing runs the gang\n{jobs}, but no Deployment {OPERATOR} in this render"
        yield Hit(first, policy_path(), message, fix="add `training-operator: {}` under addons")
        return
    value = _flag(operator.manifest)
    if value != GANG_SCHEDULER:
        said = f"{FLAG} is {value}" if value else f"{FLAG} is missing"
        message = f"the training operator makes no gangs for Volcano\n{said}; {jobs}"
        yield Hit(operator, below("", *CONTAINERS, 0, "args"), message, fix=f"add the argument {FLAG}={GANG_SCHEDULER}")


def _flag(deployment: Mapping[str, Any]) -> str:
    """Return the value of the gang flag; as in Go, one dash or two, `=` or a word of its own, the last wins."""
    value = ""
    for container in at(deployment, *CONTAINERS) or ():
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        for index, word in enumerate(words):
            name, equals, given = word.partition("=")
            if name.lstrip("-") == FLAG.lstrip("-") and name.startswith("-"):
                value = given if equals else str(at(words, index + 1) or "")
    return value


def _scheduler(context: Context, first: Rendered, jobs: str) -> Iterator[Hit]:
    if POD_GROUPS not in context.by_identity:
        message = f"nothing knows what a gang is\n{jobs}, but the CRD {POD_GROUPS.name} is not in this render"
        yield Hit(first, policy_path(), message, fix="add `volcano: {}` under addons")
    scheduler = _deployment(context, SCHEDULER)
    if not scheduler:
        message = f"nothing places the gang\n{jobs}, but no Deployment {SCHEDULER} in this render"
        yield Hit(first, policy_path(), message, fix="add `volcano: {}` under addons")
        return
    configs = list(_configs(context, scheduler))
    if not configs:
        message = f"the scheduler has no configuration\nno ConfigMap that it mounts has the key {CONFIG_KEY}; {jobs}"
        yield Hit(scheduler, "spec.template.spec.volumes", message, fix=f"mount the ConfigMap with {CONFIG_KEY}")
    for config in configs:
        yield from _plugins(config, jobs)


def _configs(context: Context, scheduler: Rendered) -> Iterator[Rendered]:
    for volume in at(scheduler.manifest, "spec", "template", "spec", "volumes") or ():
        name = at(volume, "configMap", "name")
        config = context.by_identity.get(Identity("", "ConfigMap", scheduler.identity.namespace, name or ""))
        if config and at(config.manifest, "data", CONFIG_KEY) is not None:
            yield config


def _plugins(config: Rendered, jobs: str) -> Iterator[Hit]:
    path = below("", "data", CONFIG_KEY)
    try:
        settings = yaml.safe_load(config.manifest["data"][CONFIG_KEY])
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        yield Hit(
            config, path, f"the scheduler's configuration is not YAML\n{reason}", fix="correct it; Volcano ignores it"
        )
        return
    names = [at(plugin, "name") for tier in at(settings, "tiers") or () for plugin in at(tier, "plugins") or ()]
    if "gang" not in names:
        found = ", ".join(str(name) for name in names) or "none"
        message = f"the scheduler starts gangs in part\nits tiers have no plugin gang, only: {found}; {jobs}"
        yield Hit(config, path, message, fix="add the plugin gang to the first tier")


def _deployment(context: Context, name: str) -> Rendered | None:
    return next((each for each in context.by_kind.get("Deployment", ()) if each.identity.name == name), None)


RULE = Rule(
    id="gang-operator-enabled",
    scope="render",
    severity="error",
    why="Without its flag the training operator ignores schedulingPolicy without a word, and every job starts in part.",
    fix="run Volcano with the plugin gang, and the training operator with --gang-scheduler-name=volcano",
    source="https://github.com/kubeflow/trainer/issues/1825, https://github.com/kubeflow/trainer/issues/2325",
    check=check,
)
