"""The cluster that a deployment is about to change: which one it is, and which CRDs it has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from gpuyard.errors import InputError, Problem
from gpuyard.manifests import Manifest, Rendered
from gpuyard.manifests.data import is_list, is_map
from gpuyard.manifests.ownership import INVENTORY_NAME, INVENTORY_NAMESPACE


class Cluster(Protocol):
    """What the program reads of a cluster before it registers anything."""

    def uid(self) -> str:
        """Return the UID of the namespace kube-system: it is made with the cluster and never changes."""
        ...

    def crds(self) -> list[Manifest]:
        """Return the CustomResourceDefinitions."""
        ...

    def engine(self) -> str:
        """Return the engine that an inventory in the cluster names; "" without one: Pulumi keeps its own state."""
        ...


class LiveCluster:
    """The cluster of the current kubeconfig context, which the provider deploys to as well."""

    def uid(self) -> str:
        return self._ask(lambda core, _: core.read_namespace("kube-system", _request_timeout=30).metadata.uid)

    def crds(self) -> list[Manifest]:
        # Raw JSON: making the client's models of a megabyte of CRDs takes seconds.
        return self._ask(
            lambda _, extensions: json.loads(
                extensions.list_custom_resource_definition(_preload_content=False, _request_timeout=30).data
            )["items"]
        )

    def engine(self) -> str:
        chosen = f"metadata.name={INVENTORY_NAME}"
        found = self._ask(
            lambda core, _: (
                core.list_namespaced_config_map(INVENTORY_NAMESPACE, field_selector=chosen, _request_timeout=30).items
            )
        )
        return found[0].data["engine"] if found else ""

    def _ask(self, question: Callable[[Any, Any], Any]) -> Any:
        # Imported here: the package takes as long to load as a whole platform to render.
        import kubernetes
        from urllib3.exceptions import HTTPError

        untyped: Any = kubernetes
        try:
            with untyped.config.new_client_from_config() as api:
                return question(untyped.client.CoreV1Api(api), untyped.client.ApiextensionsV1Api(api))
        except (untyped.config.ConfigException, untyped.client.ApiException, HTTPError, OSError) as error:
            raise InputError(
                Problem(
                    "the cluster cannot be read",
                    detail=str(error).strip().partition("\n")[0] or type(error).__name__,
                    fix="point KUBECONFIG and its current context at the cluster; kubectl get namespaces must work",
                )
            ) from error


def check_engine(cluster: Cluster) -> None:
    """Refuse a cluster that another engine deploys to: each would take the other's objects for changes by hand."""
    if engine := cluster.engine():
        raise InputError(
            Problem(
                "this cluster belongs to another engine",
                field=f"ConfigMap {INVENTORY_NAMESPACE}/{INVENTORY_NAME}: engine",
                detail=f"found {engine}; this command is for pulumi",
                fix=f"gpuyard deploy --engine {engine}, or an empty cluster",
            )
        )


def check_crds(rendered: Iterable[Rendered], cluster: Cluster, stack: str) -> None:
    """Refuse to go on where a CRD of this render is missing in the cluster, or older than here.

    A CRD is older when a version of it, or a part of that version's schema, is not in the cluster. What the API server
    filled in, and what a newer CRD has more, is no difference. stack: where the CRDs are deployed.
    """
    live = {crd["metadata"]["name"]: crd for crd in cluster.crds()}
    missing: list[str] = []
    older: list[str] = []
    for crd in rendered:
        name = crd.identity.name
        if name not in live:
            missing.append(name)
        elif not _has_versions(live[name], crd.manifest):
            older.append(name)
    if missing or older:
        lines = [
            f"{word}: {', '.join(sorted(names))}" for word, names in (("missing", missing), ("older", older)) if names
        ]
        raise InputError(
            Problem(
                "the cluster's CRDs are not those of this render",
                detail="\n".join(lines),
                fix=f"pulumi up --stack {stack}",
            )
        )


def _has_versions(live: Manifest, rendered: Manifest) -> bool:
    found = {version["name"]: version for version in live["spec"]["versions"]}
    return all(
        version["name"] in found and _contains(found[version["name"]], version)
        for version in rendered["spec"]["versions"]
    )


def _contains(live: Any, wanted: Any) -> bool:
    """Whether everything of `wanted` is in `live`; maps of `live` may have more keys."""
    if is_map(wanted) and is_map(live):
        return all(key in live and _contains(live[key], value) for key, value in wanted.items())
    if is_list(wanted) and is_list(live):
        return len(live) == len(wanted) and all(_contains(one, other) for one, other in zip(live, wanted, strict=True))
    return live == wanted
