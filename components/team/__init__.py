"""A team: its namespace and everything in it that exists before any job, and its queue."""

from __future__ import annotations

from collections.abc import Iterator

from components.queues import queue
from components.storage import dataset_claim
from components.team.access import admin_role, member_role, role_binding
from components.team.namespace import limit_range, namespace, resource_quota, service_account
from components.team.network import network_policies
from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Lifecycle, Rendered, declare
from gpuyard.model.environment import Environment, Team
from gpuyard.model.registry import Component, Registry

__all__ = ["component", "register", "team", "teams"]

component = Component("team")


@component.part
def teams(environment: Environment, settings: None) -> Iterator[Rendered]:
    """Yield the bundle of every team."""
    for one in environment.teams.values():
        yield from team(environment, one)


def team(environment: Environment, team: Team) -> Iterator[Rendered]:
    """Yield all objects of one team. Raises InputError when its name is one that Kubernetes or Volcano uses itself."""
    where = ("teams", team.name)
    if team.name == "default" or team.name.startswith("kube-"):
        raise InputError(
            Problem(
                "reserved name",
                environment.origin(*where, "name"),
                "name",
                f"{team.name}: Kubernetes has a namespace of its own called so",
                "choose another name",
            )
        )
    origin, quota = environment.origin(*where), environment.origin(*where, "quota")
    kept = Lifecycle(protect=environment.cluster.protect)
    yield declare(namespace(environment, team), origin=origin, lifecycle=kept)
    yield declare(resource_quota(environment, team), origin=quota)
    yield declare(limit_range(team), origin=origin)
    yield declare(service_account(team), origin=origin)

    members = environment.origin(*where, "members")
    yield declare(member_role(environment, team), origin=members)
    yield declare(admin_role(team), origin=members)
    # Admins are members too, so that the rules of members are written once.
    groups = {"member": [*team.members.member, *team.members.admin], "admin": team.members.admin}
    for role, names in groups.items():
        if names:
            yield declare(role_binding(team, role, list(dict.fromkeys(names))), origin=members)

    for policy in network_policies(team):
        yield declare(policy, origin=origin)
    if environment.scheduling.gang == "volcano":
        manifest = queue(environment, team.name, team.quota, team.share, where)
        yield declare(manifest, origin=quota, lifecycle=kept)
    for index, dataset in enumerate(team.datasets):
        yield dataset_claim(environment, team.name, dataset, environment.origin(*where, "datasets", index))


def register(registry: Registry) -> None:
    """Add this component."""
    registry.add(component)
