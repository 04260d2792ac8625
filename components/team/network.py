"""Who a team's pods may talk to: nobody, then the few that training needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from components.team.namespace import namespaced
from gpuyard.manifests import Manifest
from gpuyard.model.environment import Team


def network_policies(team: Team) -> Iterator[Manifest]:
    """Yield the policies of a team. NICs of a fabric pass them by; they hold for the pod network only."""
    yield _policy(team, "default-deny", {}, ingress=[], egress=[])
    yield _policy(
        team,
        "allow-dns",
        {},
        egress=[{"to": [_namespace("kube-system")], "ports": [_port("UDP", 53), _port("TCP", 53)]}],
    )
    # NCCL and TensorFlow choose their ports at random. A policy cannot say "of the same job", so it is the namespace's.
    yield _policy(
        team,
        "allow-within-jobs",
        _job_pods(),
        ingress=[{"from": [{"podSelector": _job_pods()}]}],
        egress=[{"to": [{"podSelector": _job_pods()}]}],
    )
    yield _policy(team, "allow-metrics", _job_pods(), ingress=[{"from": [_namespace("monitoring")]}])
    # NFS, and Lustre with the ports that its servers answer from.
    yield _policy(
        team,
        "allow-storage",
        _job_pods(),
        egress=[{"ports": [_port("TCP", 2049), _port("TCP", 988), _port("TCP", 1018) | {"endPort": 1023}]}],
    )
    # Object stores and experiment trackers.
    anywhere = [{"ipBlock": {"cidr": "0.0.0.0/0"}}, {"ipBlock": {"cidr": "::/0"}}]
    yield _policy(team, "allow-https", _job_pods(), egress=[{"to": anywhere, "ports": [_port("TCP", 443)]}])


def _policy(team: Team, name: str, pods: Manifest, **directions: list[Any]) -> Manifest:
    spec = {"podSelector": pods, "policyTypes": [direction.capitalize() for direction in directions]}
    # An empty list of rules allows nothing, and is what an absent one means.
    spec |= {direction: rules for direction, rules in directions.items() if rules}
    return namespaced(team, "networking.k8s.io/v1", "NetworkPolicy", name, spec=spec)


def _job_pods() -> Manifest:
    """Select the pods that a training operator made; it puts the label on all of them."""
    return {"matchExpressions": [{"key": "training.kubeflow.org/operator-name", "operator": "Exists"}]}


def _namespace(name: str) -> Manifest:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def _port(protocol: str, number: int) -> Manifest:
    return {"protocol": protocol, "port": number}
