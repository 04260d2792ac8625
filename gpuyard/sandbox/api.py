"""The Kubernetes API as sandbox commands need it: objects as plain dicts, errors as the server words them.

Connection and credentials are those of the `kubernetes` package, which only this module loads.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from gpuyard.errors import InputError, Origin, Problem
from gpuyard.manifests import Identity, Manifest, identity

MANAGER = "gpuyard"


class ApiError(Exception):
    """An answer of the API server other than success; status 0: it did not answer at all."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        super().__init__(message)


def has_condition(live: Manifest, *types: str) -> bool:
    """Return whether one of these conditions of an object's status is true."""
    conditions: list[dict[str, str]] = live.get("status", {}).get("conditions") or []
    return any(one["type"] in types and one["status"] == "True" for one in conditions)


class Api:
    """A connection to one cluster; may be used by several threads."""

    def __init__(self, kubeconfig: Path) -> None:
        try:
            from kubernetes import config
        except ImportError as error:
            raise InputError(
                Problem(
                    "the Python package kubernetes is not installed",
                    detail="sandbox and deploy need it",
                    fix="pip install 'gpuyard[deploy]'",
                )
            ) from error
        if not kubeconfig.exists():
            raise InputError(Problem("no kubeconfig", Origin(str(kubeconfig)), fix="start the cluster first"))
        client: Any = config.new_client_from_config(str(kubeconfig), persist_config=False)  # pyright: ignore[reportUnknownMemberType] - no types there
        self._server: str = client.configuration.host
        # The connection pool itself: the package's own request method changed its signature between releases.
        self._pool: Any = client.rest_client.pool_manager
        self._resources: dict[str, dict[str, tuple[str, bool]]] = {}

    def request(
        self, method: str, path: str, query: dict[str, str] | None = None, body: Any = None, content: str = ""
    ) -> Any:
        """Send one request and return the decoded answer. Raises ApiError."""
        from urllib3.exceptions import HTTPError

        url = f"{self._server}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "application/json", "Content-Type": content or "application/json"}
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        try:
            response = self._pool.request(method, url, body=data, headers=headers, timeout=60, retries=False)
        except HTTPError as error:
            raise ApiError(0, "Unreachable", f"{self._server} does not answer: {error}") from error
        text: str = response.data.decode()
        if response.status >= 300:
            status: Any = json.loads(text) if text.startswith("{") else {}
            raise ApiError(response.status, status.get("reason", ""), status.get("message") or text)
        return json.loads(text) if text.startswith("{") else text

    def ready(self) -> bool:
        """Return whether the API server answers that it is ready."""
        try:
            return self.request("GET", "/readyz") == "ok"
        except ApiError:
            return False

    def path(self, api_version: str, kind: str, namespace: str = "", name: str = "") -> str:
        """Return the path of a kind's collection, or of one object. Raises ApiError 404 if it is not served."""
        base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        known = self._resources.get(api_version, {})
        if kind not in known:
            # Asked again for an unknown kind: its CRD may have come since.
            known = self._resources[api_version] = self._discover(base)
        if kind not in known:
            raise ApiError(404, "NotFound", f"the server serves no kind {kind} in {api_version}")
        plural, namespaced = known[kind]
        middle = f"/namespaces/{namespace or 'default'}" if namespaced and (namespace or name) else ""
        return f"{base}{middle}/{plural}" + (f"/{name}" if name else "")

    def _discover(self, base: str) -> dict[str, tuple[str, bool]]:
        """Return the plural of each kind of a group and version, and whether it has a namespace."""
        try:
            resources: list[dict[str, Any]] = self.request("GET", base)["resources"]
        except ApiError as error:
            if error.status == 404:
                return {}
            raise
        return {one["kind"]: (one["name"], one["namespaced"]) for one in resources if "/" not in one["name"]}

    def path_of(self, manifest: Manifest) -> str:
        who = identity(manifest)
        return self.path(manifest["apiVersion"], who.kind, who.namespace, who.name)

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Manifest | None:
        """Return one object, or None where it does not exist."""
        try:
            return self.request("GET", self.path(api_version, kind, namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def get_like(self, manifest: Manifest) -> Manifest | None:
        """Return the live object of a manifest, or None where it does not exist."""
        who: Identity = identity(manifest)
        return self.get(manifest["apiVersion"], who.kind, who.name, who.namespace)

    def list(self, api_version: str, kind: str, namespace: str = "", selector: str = "") -> list[Manifest]:
        """Return objects of a kind; left out, of all namespaces. The server's cache is recent enough for us."""
        query = {"resourceVersion": "0"} | ({"labelSelector": selector} if selector else {})
        items: list[Manifest] = self.request("GET", self.path(api_version, kind, namespace), query)["items"]
        # The server leaves out of a list's items what the list itself says.
        return [{**item, "apiVersion": api_version, "kind": kind} for item in items]

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Server-side apply as field manager `gpuyard`: conflicts are ours, unknown fields are refused."""
        query = {"fieldManager": MANAGER, "force": "true", "fieldValidation": "Strict"}
        query |= {"dryRun": "All"} if dry_run else {}
        return self.request("PATCH", self.path_of(manifest), query, manifest, "application/apply-patch+yaml")

    def create(self, manifest: Manifest) -> Manifest:
        """Create an object. Raises ApiError 409 where it exists."""
        who = identity(manifest)
        path = self.path(manifest["apiVersion"], who.kind, who.namespace or "default")
        return self.request("POST", path, {"fieldManager": MANAGER, "fieldValidation": "Strict"}, manifest)

    def merge(self, manifest: Manifest, patch: Any, subresource: str = "") -> Manifest:
        """Change an existing object by a merge patch."""
        path = self.path_of(manifest) + (f"/{subresource}" if subresource else "")
        return self.request("PATCH", path, {"fieldManager": MANAGER}, patch, "application/merge-patch+json")

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object, its dependents in the background; one that is gone already is fine."""
        try:
            path = self.path(api_version, kind, namespace, name)
            self.request("DELETE", path, body={"propagationPolicy": "Background"})
        except ApiError as error:
            if error.status != 404:
                raise
