"""Whether a controller's process is ready: healthy, and answering for every webhook that leads to it."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence

from gpuyard.manifests import Manifest, identity
from gpuyard.sandbox.localize import Controller


def waits_for(controller: Controller, hooks: Sequence[tuple[Manifest, Manifest]]) -> str:
    """Return what a running controller waits for; "" when it is ready.

    hooks: the webhook configurations that call it, each with its client configuration.
    """
    if _status(controller.ports["health"], "/healthz", tls=controller.program.tls) != 200:
        return "its health check"
    if "webhook" not in controller.ports:
        return ""
    if not _listens(controller.ports["webhook"]):
        return "its webhook port"
    # One that serves webhooks answers only for configurations that exist, so none is not enough to know.
    if not hooks:
        return "a webhook configuration that calls it"
    for configuration, client in hooks:
        if not client.get("caBundle"):
            return f"its certificate in {identity(configuration)}"
        # A port that listens is not enough: some register their handlers once they have a certificate.
        # Without a body it is no review, which they answer too.
        path: str = client["service"].get("path", "/")
        if _status(controller.ports["webhook"], path, tls=True) in (0, 404):
            return f"its handler of {path}"
    return ""


def _status(port: int, path: str, *, tls: bool) -> int:
    """Return the HTTP status of the answer to a GET; 0 when there is none."""
    # As a kubelet's probe: whose certificate it is does not matter for whether it is alive.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=2, context=context if tls else None) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
