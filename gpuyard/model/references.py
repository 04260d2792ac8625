"""Names that must exist: every name in an environment that stands for something else written there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuyard.errors import Origin, Problem, listed, nearest
from gpuyard.manifests.yaml.read import field_name
from gpuyard.model.environment import Environment
from gpuyard.model.jobs import Job, SecretKey
from gpuyard.model.layers import Path
from gpuyard.model.registry import Registry


def broken_references(environment: Environment, registry: Registry) -> list[Problem]:
    """Return a problem for each name that names nothing, by place."""
    found = [
        *_storage(environment),
        *_queues(environment),
        *_teams(environment),
        *(problem for job in environment.jobs.values() for problem in _job(environment, registry, job)),
    ]
    return sorted(found, key=lambda problem: (problem.origin or Origin(""), problem.field))


def _missing(
    environment: Environment, what: str, name: str, known: Iterable[str], path: Path, where: str, fix: str = ""
) -> Iterator[Problem]:
    """Yield a problem when `name` is not among `known`; `where` says where such things are declared."""
    accepted = list(known)
    if name in accepted:
        return
    has = f"{where} has {listed(accepted)}"
    hint = nearest(name, accepted)
    field = field_name(path[2:] if path[0] in ("jobs", "teams") else path)
    yield Problem(f"no such {what}", environment.origin(*path), field, f"{name}; {has}", fix or hint)


def _storage(environment: Environment) -> Iterator[Problem]:
    classes = environment.storage.classes
    for name, dataset in environment.storage.datasets.items():
        path = ("storage", "datasets", name, "class")
        yield from _missing(environment, "storage class", dataset.class_, classes, path, "storage.classes")
    if environment.storage.checkpoints:
        path = ("storage", "checkpoints")
        yield from _missing(
            environment, "storage class", environment.storage.checkpoints, classes, path, "storage.classes"
        )


def _queues(environment: Environment) -> Iterator[Problem]:
    for name, queue in environment.scheduling.queues.items():
        for pool in queue.quota:
            path = ("scheduling", "queues", name, "quota", pool)
            yield from _missing(environment, "pool", pool, environment.pools, path, "pools")
        for index, team in enumerate(queue.teams or ()):
            path = ("scheduling", "queues", name, "teams", index)
            yield from _missing(environment, "team", team, environment.teams, path, "the folder teams/")
        if name in environment.teams:
            yield Problem(
                "two queues with one name",
                environment.origin("scheduling", "queues", name),
                f"scheduling.queues.{name}",
                f"team {name} has a queue of its own with that name",
                "give the shared queue another name",
            )


def _teams(environment: Environment) -> Iterator[Problem]:
    for name, team in environment.teams.items():
        for pool in team.quota:
            yield from _missing(environment, "pool", pool, environment.pools, ("teams", name, "quota", pool), "pools")
        for index, dataset in enumerate(team.datasets):
            path = ("teams", name, "datasets", index)
            yield from _missing(environment, "dataset", dataset, environment.storage.datasets, path, "storage.datasets")
        for index, secret in enumerate(team.pull_secrets):
            path = ("teams", name, "pull-secrets", index)
            yield from _missing(environment, "secret", secret, team.secrets, path, f"team {name}'s secrets")


def _job(environment: Environment, registry: Registry, job: Job) -> Iterator[Problem]:
    path = ("jobs", job.name)
    yield from _missing(environment, "team", job.team, environment.teams, (*path, "team"), "the folder teams/")
    addon = registry.kinds[job.kind].addon
    if addon not in environment.addons:
        yield Problem(
            "nothing runs this job",
            environment.origin(*path, "kind"),
            "kind",
            f"a {job.kind} job is run by {addon}, which {environment.name} does not have",
            f"add `{addon}: {{}}` under addons",
        )
    for index, pool in enumerate(job.pools):
        yield from _missing(environment, "pool", pool, environment.pools, (*path, "pools", index), "pools")
    if job.priority:
        priorities = environment.scheduling.priorities
        yield from _missing(
            environment, "priority", job.priority, priorities, (*path, "priority"), "scheduling.priorities"
        )
    if job.checkpoint and job.checkpoint.class_:
        place = (*path, "checkpoint", "class")
        yield from _missing(
            environment, "storage class", job.checkpoint.class_, environment.storage.classes, place, "storage.classes"
        )
    if job.team in environment.teams:
        yield from _job_of_team(environment, job, path)


def _job_of_team(environment: Environment, job: Job, path: Path) -> Iterator[Problem]:
    team = environment.teams[job.team]
    file = environment.origin("teams", team.name)
    where = f"team {team.name} ({file.file if file else 'its file'})"
    for index, dataset in enumerate(job.data):
        place = (*path, "data", index)
        if dataset in environment.storage.datasets and dataset not in team.datasets:
            fix = f"add {dataset} to the team's datasets"
            yield from _missing(environment, "dataset", dataset, team.datasets, place, where, fix)
        else:
            yield from _missing(
                environment, "dataset", dataset, environment.storage.datasets, place, "storage.datasets"
            )
    for variable, value in job.env.items():
        if isinstance(value, SecretKey):
            place = (*path, "env", variable, "secret")
            fix = f"create it in namespace {team.name} and add its name to the team's secrets"
            yield from _missing(environment, "secret", value.secret, team.secrets, place, where, fix)
    if job.queue:
        usable = environment.usable_queues(team.name)
        yield from _missing(environment, "queue", job.queue, usable, (*path, "queue"), where)
