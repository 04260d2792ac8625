"""The namespace of a team, what its pods may use in all, and what a pod gets that asks for nothing."""

from __future__ import annotations

from typing import Any

from components.jobs.pod import SERVICE_ACCOUNT
from components.namespaces import pod_security
from components.queues import format_amounts, quota_amounts, team_quota
from gpuyard.manifests import Manifest
from gpuyard.model.environment import Environment, Team


def namespaced(team: Team, api_version: str, kind: str, name: str, **content: Any) -> Manifest:
    """Return an object in the team's namespace with the labels that all of them carry."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": team.name, "labels": _labels(team)},
        **content,
    }


def _labels(team: Team) -> dict[str, str]:
    return {"app.kubernetes.io/managed-by": "gpuyard", "gpuyard.dev/team": team.name}


def namespace(environment: Environment, team: Team) -> Manifest:
    """Return the Namespace with its Pod Security level, pinned to the cluster's version.

    Baseline refuses IPC_LOCK, which a fabric needs; a team with a quota in such a pool has the level `privileged`.
    """
    pools = [name for name, count in team_quota(environment, team.name).items() if count]
    fabric = any(environment.pools[name].fabric for name in pools)
    enforced = "privileged" if fabric else "baseline"
    levels = pod_security(environment, {"enforce": enforced, "warn": "restricted", "audit": "restricted"})
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team.name, "labels": _labels(team) | levels}}


def resource_quota(environment: Environment, team: Team) -> Manifest:
    """Return the ResourceQuota: the team's own quota and that of every shared queue it may use.

    A lower number than the queues' would let half a gang in: Volcano admits it, then the API server refuses some pods.
    Memory is never promised twice, so limits are counted as well. Cards, interfaces and huge pages can only be counted
    as `requests.` (k8s.io/kubernetes/pkg/quota/v1/evaluator/core/pods.go).
    """
    hard: dict[str, str] = {}
    for name, amount in format_amounts(quota_amounts(environment, team_quota(environment, team.name))).items():
        hard[f"requests.{name}"] = amount
        if name == "memory":
            hard["limits.memory"] = amount
    return namespaced(team, "v1", "ResourceQuota", "quota", spec={"hard": hard})


def limit_range(team: Team) -> Manifest:
    """Return what a container gets that asks for nothing.

    Under a ResourceQuota such a container, an injected init container for example, would be refused. CPU has no limit:
    it would only slow down data loaders while cores are idle.
    """
    limits = {
        "type": "Container",
        "default": {"memory": "1Gi"},
        "defaultRequest": {"cpu": "100m", "memory": "1Gi"},
    }
    return namespaced(team, "v1", "LimitRange", "defaults", spec={"limits": [limits]})


def service_account(team: Team) -> Manifest:
    """Return the account that training pods run as; it may do nothing, and its token is not mounted."""
    return namespaced(team, "v1", "ServiceAccount", SERVICE_ACCOUNT, automountServiceAccountToken=False)
