"""Which image is which local program, and what such a program has to be told because it runs outside a pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Port:
    """A port that a program listens on: the flag that sets it, the port without the flag, and the flag's form."""

    flag: str
    default: int
    form: str = "127.0.0.1:{}"


@dataclass(frozen=True, slots=True)
class Program:
    """A controller that runs as a local process. It takes `--kubeconfig`.

    binary:  its name in the lock file.
    ports:   by purpose; "health" answers /healthz, "webhook" serves admission over TLS.
    tls:     whether "health" is served over TLS too.
    flags:   set on top of what is rendered.
    expects: a file that the program looks for, and never reads, at a path that cannot be set.
    """

    binary: str
    ports: Mapping[str, Port]
    flags: Mapping[str, str] = field(default_factory=dict[str, str])
    tls: bool = False
    expects: str = ""


def _volcano(metrics: int) -> dict[str, Port]:
    return {"metrics": Port("--listen-address", metrics), "health": Port("--healthz-address", 11251)}


PROGRAMS: Mapping[str, Program] = {
    "vc-scheduler": Program("vc-scheduler", _volcano(metrics=8080)),
    "vc-controller-manager": Program("vc-controller-manager", _volcano(metrics=8081)),
    "vc-webhook-manager": Program(
        "vc-webhook-manager",
        {"webhook": Port("--port", 8443, "{}"), "health": Port("--healthz-address", 11251)},
        flags={"--listen-address": "127.0.0.1"},
        tls=True,
    ),
    "training-operator": Program(
        "training-operator",
        {
            "metrics": Port("--metrics-bind-address", 8080),
            "health": Port("--health-probe-bind-address", 8081),
            "webhook": Port("--webhook-server-port", 9443, "{}"),
        },
        # pkg/cert/cert.go: the certificate rotator waits for this file, while the server reads the one in TMPDIR.
        expects="/tmp/k8s-webhook-server/serving-certs/tls.crt",
    ),
}
"""By the last part of an image's repository."""


def repository(image: str) -> str:
    """Return the last part of an image's repository: `docker.io/volcanosh/vc-scheduler:v1.14.1` -> `vc-scheduler`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]
