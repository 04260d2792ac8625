"""What the API server checks of its own kinds, and Volcano of two of its, and OpenAPI does not say.

Source: k8s.io/kubernetes/pkg/apis/<group>/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import ip_network
from typing import Any, TypeAlias

from gpuyard.manifests.schemas.amounts import check_amounts
from gpuyard.manifests.schemas.pod_checks import check_pod, check_unique_name
from gpuyard.manifests.schemas.selectors import check_selects_template
from gpuyard.manifests.schemas.shapes import Found, Steps, as_list, as_map, is_map
from gpuyard.manifests.schemas.text import (
    config_key_problem,
    count_or_percent_problem,
    label_problem,
    path_name_problem,
    port_or_name_problem,
    port_problem,
    schedule_problem,
    service_problem,
    subdomain_problem,
    time_zone_problem,
)

Check: TypeAlias = Callable[[dict[str, Any]], Iterator[Found]]

_MAX_DATA = 1024 * 1024
_RBAC = "rbac.authorization.k8s.io"


def name_problem(kind: str, name: str) -> str:
    """Return what is wrong with the name of an object of `group/Kind`, or ""."""
    return _NAMES.get(kind, subdomain_problem)(name)


def _cron_job_name(name: str) -> str:
    # The name of each of its Jobs is this one and 11 characters.
    return subdomain_problem(name) or (f"{len(name)} characters; at most 52" if len(name) > 52 else "")


def _priority_class_name(name: str) -> str:
    reserved = "names that begin with system- are Kubernetes' own"
    return subdomain_problem(name) or (reserved if name.startswith("system-") and name not in _SYSTEM else "")


_SYSTEM = ("system-node-critical", "system-cluster-critical")
_NAMES: dict[str, Callable[[str], str]] = {
    "/Namespace": label_problem,
    "/Service": service_problem,
    "batch/CronJob": _cron_job_name,
    "scheduling.k8s.io/PriorityClass": _priority_class_name,
    **{f"{_RBAC}/{kind}": path_name_problem for kind in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")},
}


def _config(manifest: dict[str, Any]) -> Iterator[Found]:
    size = 0
    for field in ("data", "stringData", "binaryData"):
        for key, value in as_map(manifest.get(field)).items():
            if problem := config_key_problem(key):
                yield Found((field, key), None, problem)
            size += len(value.encode()) if isinstance(value, str) else 0
    for key in as_map(manifest.get("binaryData")).keys() & as_map(manifest.get("data")).keys():
        yield Found(("binaryData", key), None, f"`{key}` stands in data too")
    if size > _MAX_DATA:
        yield Found(("data",), None, f"{size} bytes in all; at most {_MAX_DATA}")


def _service(manifest: dict[str, Any]) -> Iterator[Found]:
    spec, first = as_map(manifest.get("spec")), dict[str, Steps]()
    if spec.get("type") == "ExternalName" and not spec.get("externalName"):
        yield Found(("spec", "externalName"), None, "required field is missing: the type is ExternalName")
    ports = as_list(spec.get("ports"))
    if not ports and is_map(manifest.get("spec")) and spec.get("type") != "ExternalName":
        if spec.get("clusterIP") != "None":
            yield Found(("spec", "ports"), None, "required field is missing")
        return
    for index, port in enumerate(map(as_map, ports)):
        here = ("spec", "ports", index)
        for field in ("port", "nodePort"):
            if problem := port_problem(port.get(field) or None if field == "nodePort" else port.get(field)):
                yield Found((*here, field), port[field], problem)
        target = port.get("targetPort")
        if target not in (None, 0, "") and (problem := port_or_name_problem(target)):
            yield Found((*here, "targetPort"), target, problem)
        if len(ports) > 1 and not port.get("name"):
            yield Found((*here, "name"), None, "required field is missing: there are several ports")
        yield from check_unique_name(port.get("name"), here, first, label_problem)


def _quota(manifest: dict[str, Any]) -> Iterator[Found]:
    return check_amounts(as_map(manifest.get("spec")).get("hard"), "spec", "hard")


def _limit_range(manifest: dict[str, Any]) -> Iterator[Found]:
    for index, limit in enumerate(as_list(as_map(manifest.get("spec")).get("limits"))):
        for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
            yield from check_amounts(as_map(limit).get(field), "spec", "limits", index, field)


def _claim_spec(spec: dict[str, Any], *steps: str | int) -> Iterator[Found]:
    if not spec.get("accessModes"):
        yield Found((*steps, "accessModes"), None, "required field is missing")
    if "storage" not in as_map(as_map(spec.get("resources")).get("requests")):
        yield Found((*steps, "resources", "requests", "storage"), None, "required field is missing")


def _claim(manifest: dict[str, Any]) -> Iterator[Found]:
    if is_map(spec := manifest.get("spec")):
        yield from _claim_spec(spec, "spec")


def _pod(manifest: dict[str, Any]) -> Iterator[Found]:
    return _pod_of(manifest.get("spec"), "spec")


def _pod_of(
    pod: object, *steps: str | int, claims: tuple[str, ...] = (), restarts: tuple[str, ...] = ()
) -> Iterator[Found]:
    for found in check_pod(pod, claims):
        yield found.below(*steps)
    if restarts and is_map(pod) and (policy := pod.get("restartPolicy") or "Always") not in restarts:
        message = f"{policy} is not accepted here; accepted: {', '.join(restarts)}"
        yield Found((*steps, "restartPolicy"), pod.get("restartPolicy"), message)


def _workload(manifest: dict[str, Any]) -> Iterator[Found]:
    spec = as_map(manifest.get("spec"))
    claims: list[str] = []
    for index, claim in enumerate(map(as_map, as_list(spec.get("volumeClaimTemplates")))):
        claims.append(str(as_map(claim.get("metadata")).get("name")))
        yield from _claim_spec(as_map(claim.get("spec")), "spec", "volumeClaimTemplates", index, "spec")
    pod = as_map(spec.get("template")).get("spec")
    yield from _pod_of(pod, "spec", "template", "spec", claims=tuple(claims), restarts=("Always",))
    yield from check_selects_template(spec)
    for strategy in ("strategy", "updateStrategy"):
        rolling = as_map(as_map(spec.get(strategy)).get("rollingUpdate"))
        for field in ("maxUnavailable", "maxSurge"):
            if problem := count_or_percent_problem(rolling.get(field), most=100 if field == "maxUnavailable" else None):
                yield Found(("spec", strategy, "rollingUpdate", field), rolling[field], problem)
        # Left out, each of the two is above 0.
        if rolling.get("maxSurge") in (0, "0%") and rolling.get("maxUnavailable") in (0, "0%"):
            message = "maxUnavailable and maxSurge are both 0, so that no pod could be replaced"
            yield Found(("spec", strategy, "rollingUpdate", "maxUnavailable"), rolling["maxUnavailable"], message)


def _job_of(spec: dict[str, Any], *steps: str | int) -> Iterator[Found]:
    pod = as_map(spec.get("template")).get("spec")
    restarts = ("Never",) if spec.get("podFailurePolicy") else ("Never", "OnFailure")
    yield from _pod_of(pod, *steps, "template", "spec", restarts=restarts)
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield Found((*steps, "completions"), None, "required field is missing: the completion mode is Indexed")


def _job(manifest: dict[str, Any]) -> Iterator[Found]:
    return _job_of(as_map(manifest.get("spec")), "spec")


def _cron_job(manifest: dict[str, Any]) -> Iterator[Found]:
    spec = as_map(manifest.get("spec"))
    for field, check in (("schedule", schedule_problem), ("timeZone", time_zone_problem)):
        value = spec.get(field)
        if isinstance(value, str) and (problem := check(value)):
            yield Found(("spec", field), value, problem)
    yield from _job_of(as_map(as_map(spec.get("jobTemplate")).get("spec")), "spec", "jobTemplate", "spec")


def _disruption_budget(manifest: dict[str, Any]) -> Iterator[Found]:
    spec = as_map(manifest.get("spec"))
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield Found(("spec", "maxUnavailable"), spec["maxUnavailable"], "excluded by minAvailable; keep one of the two")
    for field in ("minAvailable", "maxUnavailable"):
        if problem := count_or_percent_problem(spec.get(field), most=100):
            yield Found(("spec", field), spec[field], problem)


def _role(manifest: dict[str, Any]) -> Iterator[Found]:
    namespaced = manifest["kind"] == "Role"
    for index, rule in enumerate(map(as_map, as_list(manifest.get("rules")))):
        here = ("rules", index)
        if not rule.get("verbs"):
            yield Found((*here, "verbs"), rule.get("verbs"), "at least one verb is needed")
        if urls := rule.get("nonResourceURLs"):
            if namespaced:
                yield Found((*here, "nonResourceURLs"), urls, "a Role has none; write a ClusterRole")
            elif rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                yield Found((*here, "nonResourceURLs"), urls, "one rule is for URLs or for resources, not for both")
            continue
        for field in ("apiGroups", "resources"):
            if not rule.get(field):
                hint = '; "" is the group of pods and Secrets' if field == "apiGroups" else ""
                yield Found((*here, field), rule.get(field), f"at least one is needed{hint}")


def _binding(manifest: dict[str, Any]) -> Iterator[Found]:
    role, namespaced = as_map(manifest.get("roleRef")), manifest["kind"] == "RoleBinding"
    kinds = ("ClusterRole", "Role") if namespaced else ("ClusterRole",)
    if is_map(manifest.get("roleRef")):
        if role.get("kind") not in kinds:
            yield Found(("roleRef", "kind"), role.get("kind"), f"accepted: {', '.join(kinds)}")
        if role.get("apiGroup", _RBAC) != _RBAC:
            yield Found(("roleRef", "apiGroup"), role["apiGroup"], f"accepted: {_RBAC}")
        if isinstance(name := role.get("name"), str) and (problem := path_name_problem(name)):
            yield Found(("roleRef", "name"), name, problem)
    for index, subject in enumerate(map(as_map, as_list(manifest.get("subjects")))):
        here, kind = ("subjects", index), subject.get("kind")
        if kind not in ("Group", "ServiceAccount", "User"):
            yield Found((*here, "kind"), kind, "accepted: Group, ServiceAccount, User")
        elif kind == "ServiceAccount":
            if not namespaced and not subject.get("namespace"):
                yield Found((*here, "namespace"), None, "required field is missing")
            if isinstance(name := subject.get("name"), str) and (problem := subdomain_problem(name)):
                yield Found((*here, "name"), name, problem)
            if subject.get("apiGroup"):
                yield Found((*here, "apiGroup"), subject["apiGroup"], "a ServiceAccount is in no group; leave it out")


def _network_policy(manifest: dict[str, Any]) -> Iterator[Found]:
    spec = as_map(manifest.get("spec"))
    for direction, ends in (("ingress", "from"), ("egress", "to")):
        for number, rule in enumerate(map(as_map, as_list(spec.get(direction)))):
            here = ("spec", direction, number)
            for index, port in enumerate(map(as_map, as_list(rule.get("ports")))):
                if problem := port_or_name_problem(port.get("port")):
                    yield Found((*here, "ports", index, "port"), port["port"], problem)
            for index, peer in enumerate(map(as_map, as_list(rule.get(ends)))):
                there = (*here, ends, index)
                if not peer:
                    yield Found(there, peer, "a peer needs a selector or an ipBlock; to allow all, leave the list out")
                block = as_map(peer.get("ipBlock"))
                for steps, cidr in (
                    (("cidr",), block.get("cidr")),
                    *((("except", n), each) for n, each in enumerate(as_list(block.get("except")))),
                ):
                    if isinstance(cidr, str) and not _is_network(cidr):
                        yield Found((*there, "ipBlock", *steps), cidr, f"`{cidr}` is no range such as 10.0.0.0/16")


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _ingress(manifest: dict[str, Any]) -> Iterator[Found]:
    for number, rule in enumerate(map(as_map, as_list(as_map(manifest.get("spec")).get("rules")))):
        for index, path in enumerate(map(as_map, as_list(as_map(rule.get("http")).get("paths")))):
            here = ("spec", "rules", number, "http", "paths", index)
            text = path.get("path")
            if path.get("pathType") in ("Exact", "Prefix") and not str(text or "").startswith("/"):
                yield Found((*here, "path"), text, "a path begins with /")


def _autoscaler(manifest: dict[str, Any]) -> Iterator[Found]:
    spec = as_map(manifest.get("spec"))
    low, high = spec.get("minReplicas"), spec.get("maxReplicas")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield Found(("spec", "minReplicas"), low, f"{low} is above maxReplicas {high}")


def _priority_class(manifest: dict[str, Any]) -> Iterator[Found]:
    value = manifest.get("value")
    if isinstance(value, int) and value > 1_000_000_000 and as_map(manifest["metadata"]).get("name") not in _SYSTEM:
        yield Found(("value",), value, f"{value} is above 1000000000; what is above is for system classes")


def _custom_resource_definition(manifest: dict[str, Any]) -> Iterator[Found]:
    spec, name = as_map(manifest.get("spec")), as_map(manifest["metadata"]).get("name")
    wanted = f"{as_map(spec.get('names')).get('plural')}.{spec.get('group')}"
    if name != wanted:
        yield Found(("metadata", "name"), name, f"`{name}` must be {wanted}: the plural and the group")
    versions = [as_map(version) for version in as_list(spec.get("versions"))]
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield Found(("spec", "versions"), None, "exactly one version must have `storage: true`")
    first: dict[str, Steps] = {}
    for index, version in enumerate(versions):
        yield from check_unique_name(version.get("name"), ("spec", "versions", index), first, label_problem)


def _webhooks(manifest: dict[str, Any]) -> Iterator[Found]:
    first: dict[str, Steps] = {}
    for index, webhook in enumerate(map(as_map, as_list(manifest.get("webhooks")))):
        here, name = ("webhooks", index), webhook.get("name")
        yield from check_unique_name(name, here, first, _webhook_name)
        client = as_map(webhook.get("clientConfig"))
        if bool(client.get("url")) == bool(client.get("service")):
            yield Found((*here, "clientConfig"), None, "exactly one of url and service is needed")
        seconds = webhook.get("timeoutSeconds")
        if isinstance(seconds, int) and not 1 <= seconds <= 30:
            yield Found((*here, "timeoutSeconds"), seconds, f"{seconds} is not one of 1 to 30")


def _webhook_name(name: str) -> str:
    parts = "a webhook's name has at least three parts, such as check.example.com"
    return subdomain_problem(name) or (parts if name.count(".") < 2 else "")


def _queue(manifest: dict[str, Any]) -> Iterator[Found]:
    spec = as_map(manifest.get("spec"))
    for field in ("capability", "deserved"):
        yield from check_amounts(spec.get(field), "spec", field)
    yield from check_amounts(as_map(spec.get("guarantee")).get("resource"), "spec", "guarantee", "resource")


def _pod_group(manifest: dict[str, Any]) -> Iterator[Found]:
    return check_amounts(as_map(manifest.get("spec")).get("minResources"), "spec", "minResources")


KIND_CHECKS: dict[str, Check] = {
    "/ConfigMap": _config,
    "/LimitRange": _limit_range,
    "/PersistentVolumeClaim": _claim,
    "/Pod": _pod,
    "/ResourceQuota": _quota,
    "/Secret": _config,
    "/Service": _service,
    "admissionregistration.k8s.io/MutatingWebhookConfiguration": _webhooks,
    "admissionregistration.k8s.io/ValidatingWebhookConfiguration": _webhooks,
    "apiextensions.k8s.io/CustomResourceDefinition": _custom_resource_definition,
    "apps/DaemonSet": _workload,
    "apps/Deployment": _workload,
    "apps/ReplicaSet": _workload,
    "apps/StatefulSet": _workload,
    "autoscaling/HorizontalPodAutoscaler": _autoscaler,
    "batch/CronJob": _cron_job,
    "batch/Job": _job,
    "networking.k8s.io/Ingress": _ingress,
    "networking.k8s.io/NetworkPolicy": _network_policy,
    "policy/PodDisruptionBudget": _disruption_budget,
    f"{_RBAC}/ClusterRole": _role,
    f"{_RBAC}/ClusterRoleBinding": _binding,
    f"{_RBAC}/Role": _role,
    f"{_RBAC}/RoleBinding": _binding,
    "scheduling.k8s.io/PriorityClass": _priority_class,
    "scheduling.volcano.sh/PodGroup": _pod_group,
    "scheduling.volcano.sh/Queue": _queue,
}
"""By `group/Kind`; the group of `v1` is empty. These find the pods of their kinds themselves."""
