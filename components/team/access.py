"""What the people of a team may do in their namespace. No wildcard, no Secret, no way to more than they have."""

from __future__ import annotations

from components.jobs import RESOURCES
from components.team.namespace import namespaced
from gpuyard.manifests import Manifest
from gpuyard.model.environment import Environment, Team

_READ = ["get", "list", "watch"]
_RBAC = "rbac.authorization.k8s.io/v1"


def member_role(environment: Environment, team: Team) -> Manifest:
    """Return the Role of members: they start, watch and delete jobs, and look into their pods.

    `pods/exec` gives them nothing that they do not have already, since they decide what a pod runs, and looking at a
    hanging job from the inside is daily work.
    """
    rules = [
        _rule("kubeflow.org", list(RESOURCES), [*_READ, "create", "delete"]),
        _rule("", ["pods", "pods/log", "events", "services", "persistentvolumeclaims", "resourcequotas"], _READ),
        _rule("events.k8s.io", ["events"], _READ),
        _rule("", ["pods/exec", "pods/portforward"], ["get", "create"]),
    ]
    if environment.scheduling.gang == "volcano":
        # A gang that waits has no pods; why it waits is written on its PodGroup.
        rules.append(_rule("scheduling.volcano.sh", ["podgroups"], _READ))
    return namespaced(team, _RBAC, "Role", "training-member", rules=rules)


def admin_role(team: Team) -> Manifest:
    """Return what admins may do beyond members: change jobs, remove pods, and pass on rights that they have.

    Without the verbs `escalate` and `bind` the API server lets them grant no more than their own rights.
    """
    rules = [
        _rule("kubeflow.org", list(RESOURCES), ["update", "patch"]),
        _rule("", ["pods"], ["delete"]),
        _rule("rbac.authorization.k8s.io", ["roles", "rolebindings"], [*_READ, "create", "update", "patch", "delete"]),
    ]
    return namespaced(team, _RBAC, "Role", "training-admin", rules=rules)


def role_binding(team: Team, role: str, groups: list[str]) -> Manifest:
    """Return the RoleBinding that gives `training-<role>` to groups of the identity provider."""
    name = f"training-{role}"
    return namespaced(
        team,
        _RBAC,
        "RoleBinding",
        name,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group} for group in groups],
    )


def _rule(group: str, resources: list[str], verbs: list[str]) -> Manifest:
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
