"""Volcano's objects: upstream's plain manifests, patched, around a scheduler configuration of our own."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from components.namespaces import addon_namespace
from components.upstream import Path, Upstream, mirrored
from components.volcano.scheduling import scheduler_configuration
from components.volcano.settings import VolcanoSettings
from gpuyard.manifests import Lifecycle, Manifest, Rendered, declare
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Source

NAMESPACE = "volcano-system"
CERTIFICATE = "volcano-admission-secret"
MANIFESTS = "installer/volcano-development.yaml"

_POD: Path = ("spec", "template", "spec")
_CONTAINER: Path = (*_POD, "containers", 0)
_WEBHOOK_MANAGER = "docker.io/volcanosh/vc-webhook-manager"

_FILL_CERTIFICATE = f"""\
set -eu
secret="{CERTIFICATE}" namespace="{NAMESPACE}"
if [ -n "$(kubectl get secret "$secret" -n "$namespace" -o jsonpath='{{.data.ca\\.crt}}')" ]; then
  exit 0
fi
kubectl patch secret "$secret" -n "$namespace" --type=merge -p '{{"data":{{"ca.crt":"","tls.crt":"","tls.key":""}}}}'
./gen-admission-secret.sh --service volcano-admission-service --namespace {NAMESPACE} --secret {CERTIFICATE}
"""


def volcano(environment: Environment, settings: VolcanoSettings, source: Source) -> Iterator[Rendered]:
    """Yield everything that Volcano needs in a cluster."""
    origin = environment.origin("addons", "volcano") or environment.origin("scheduling", "gang")
    file = Upstream("volcano", source, MANIFESTS)
    file.take("Namespace", NAMESPACE)
    file.take("Namespace", "volcano-monitoring")
    # Three Deployments, one more pod of each while it is rolled, and the certificate Job.
    yield from addon_namespace(environment, NAMESPACE, "restricted", origin, critical_pods=6 * settings.replicas + 1)
    for manifest in file.take_all("CustomResourceDefinition"):
        # All of them: the controller waits for every kind before it starts, those of job flows included.
        yield declare(manifest, origin=origin)
    for manifest in _certificate(environment, file):
        filled = Lifecycle(ignore=("data",)) if manifest["kind"] == "Secret" else None
        yield declare(manifest, origin=origin, lifecycle=filled)
    for manifest in [
        _scheduler_configuration(settings, file),
        _scheduler(environment, settings, file),
        _controllers(environment, settings, file),
        _admission(environment, settings, file),
        *file.take_all("ServiceAccount", "ConfigMap", "ClusterRole", "ClusterRoleBinding", "Service"),
    ]:
        yield declare(manifest, origin=origin)
    for manifest in file.take_all("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        # The webhook manager writes its CA into them when it starts.
        yield declare(manifest, origin=origin, lifecycle=Lifecycle(ignore=("webhooks[*].clientConfig.caBundle",)))
    file.finish()


def _scheduler_configuration(settings: VolcanoSettings, file: Upstream) -> Manifest:
    manifest = file.take("ConfigMap", "volcano-scheduler-configmap")
    text = yaml.dump(scheduler_configuration(settings), Dumper=yaml.CSafeDumper, sort_keys=False)
    file.replace(manifest, ("data", "volcano-scheduler.conf"), text)
    return manifest


def _scheduler(environment: Environment, settings: VolcanoSettings, file: Upstream) -> Manifest:
    manifest = file.take("Deployment", "volcano-scheduler")
    _run(environment, file, manifest, "docker.io/volcanosh/vc-scheduler", settings.replicas)
    _elect(file, manifest, settings.replicas)
    arguments: list[str] = file.read(manifest, (*_CONTAINER, "args"))
    # A configuration with a mistake must stop the scheduler, not make it schedule without gangs by its built-in one.
    arguments.append("--disable-default-scheduler-config=true")
    _size(file, manifest, cpu=("500m", "4"), memory=("512Mi", "4Gi"))
    return manifest


def _controllers(environment: Environment, settings: VolcanoSettings, file: Upstream) -> Manifest:
    manifest = file.take("Deployment", "volcano-controllers")
    file.add(manifest, (*_POD, "volumes"), [])
    file.add(manifest, (*_CONTAINER, "volumeMounts"), [])
    _run(environment, file, manifest, "docker.io/volcanosh/vc-controller-manager", settings.replicas)
    _elect(file, manifest, settings.replicas)
    _size(file, manifest, cpu=("200m", "2"), memory=("256Mi", "2Gi"))
    return manifest


def _admission(environment: Environment, settings: VolcanoSettings, file: Upstream) -> Manifest:
    manifest = file.take("Deployment", "volcano-admission")
    _run(environment, file, manifest, _WEBHOOK_MANAGER, settings.replicas)
    _size(file, manifest, cpu=("100m", "1"), memory=("128Mi", "512Mi"))
    file.expect(manifest, ("spec", "template", "metadata", "annotations"), {"rollme/helm-revision": "1"})
    file.remove(manifest, ("spec", "template", "metadata", "annotations"))
    certificate: Path = (*_POD, "volumes", 0)
    file.expect(manifest, (*certificate, "secret", "secretName"), CERTIFICATE)
    # Named one by one, the pod waits for these keys; otherwise it would start with an empty folder and crash.
    keys = [{"key": key, "path": key} for key in ("ca.crt", "tls.crt", "tls.key")]
    file.add(manifest, (*certificate, "secret", "items"), keys)
    # Queues and PodGroups are refused until it listens, so what makes them has to wait for this.
    file.add(manifest, (*_CONTAINER, "readinessProbe"), {"tcpSocket": {"port": 8443}, "periodSeconds": 5})
    return manifest


def _certificate(environment: Environment, file: Upstream) -> Iterator[Manifest]:
    """Yield the empty Secret of the webhooks' certificate and the Job that fills it.

    Upstream's install hook makes the Secret and makes a new certificate whenever it runs, which running pods do not
    notice. Ours fills the one Secret it may touch when that is empty, and is done when it is not, so that an upgrade
    keeps the certificate (valid for ten years). To renew it, empty the Secret and deploy a new version.
    """
    name = "volcano-admission-init"
    account, role = file.take("ServiceAccount", name), file.take("Role", name)
    binding, job = file.take("RoleBinding", f"{name}-role"), file.take("Job", name)
    for manifest in (account, role, binding, job):
        # Install hooks of a package manager; here they are objects like all others.
        file.remove(manifest, ("metadata", "annotations"))
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "patch", "get"]}
    file.expect(role, ("rules",), [secrets])
    file.replace(role, ("rules",), [{**secrets, "verbs": ["get", "patch"], "resourceNames": [CERTIFICATE]}])
    metadata = {"name": CERTIFICATE, "namespace": NAMESPACE}
    secret: Manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}

    file.replace(job, ("metadata", "name"), f"{name}-{file.version.replace('.', '-')}")
    file.replace(job, ("spec", "backoffLimit"), 6)
    file.replace(job, (*_POD, "restartPolicy"), "OnFailure")
    command = ["./gen-admission-secret.sh", "--service", "volcano-admission-service", "--namespace", NAMESPACE]
    file.expect(job, (*_CONTAINER, "command"), [*command, "--secret", CERTIFICATE])
    file.replace(job, (*_CONTAINER, "command"), ["sh", "-c", _FILL_CERTIFICATE])
    file.add(job, (*_POD, "volumes"), [])
    file.add(job, (*_CONTAINER, "volumeMounts"), [])
    _secure(environment, file, job, _WEBHOOK_MANAGER)
    _size(file, job, cpu=("50m", "500m"), memory=("64Mi", "256Mi"))
    yield from (account, role, binding, secret, job)


def _run(environment: Environment, file: Upstream, manifest: Manifest, image: str, replicas: int) -> None:
    """Set what the three Deployments have in common."""
    file.replace(manifest, ("spec", "replicas"), replicas)
    account = file.read(manifest, (*_POD, "serviceAccount"))
    file.remove(manifest, (*_POD, "serviceAccount"))
    file.add(manifest, (*_POD, "serviceAccountName"), account)
    file.expect(manifest, (*_POD, "priorityClassName"), "system-cluster-critical")
    # A shell's redirection, which no shell ever sees.
    file.expect(manifest, (*_CONTAINER, "args", -1), "2>&1")
    file.remove(manifest, (*_CONTAINER, "args", -1))
    _secure(environment, file, manifest, image)


def _secure(environment: Environment, file: Upstream, manifest: Manifest, image: str) -> None:
    """Set the image to the locked tag, and raise the container to the restricted Pod Security level."""
    file.set_image(manifest, _CONTAINER, image, mirrored(environment, file.image(image)))
    file.replace(manifest, (*_CONTAINER, "imagePullPolicy"), "IfNotPresent")
    security: Path = (*_CONTAINER, "securityContext")
    for name, value in {"allowPrivilegeEscalation": False, "runAsNonRoot": True, "runAsUser": 1000}.items():
        file.expect(manifest, (*security, name), value)
    # A capability that a process without root cannot use.
    file.expect(manifest, (*security, "capabilities"), {"add": ["DAC_OVERRIDE"], "drop": ["ALL"]})
    file.remove(manifest, (*security, "capabilities", "add"))
    file.add(manifest, (*security, "readOnlyRootFilesystem"), True)
    file.read(manifest, (*_POD, "volumes")).append({"name": "tmp", "emptyDir": {}})
    file.read(manifest, (*_CONTAINER, "volumeMounts")).append({"name": "tmp", "mountPath": "/tmp"})


def _elect(file: Upstream, manifest: Manifest, replicas: int) -> None:
    """Elect a leader among several replicas; of a single one, stop the old before the new starts."""
    file.set_flag(manifest, (*_CONTAINER, "args"), "--leader-elect", "true" if replicas > 1 else "false")
    if replicas == 1:
        file.add(manifest, ("spec", "strategy"), {"type": "Recreate"})


def _size(file: Upstream, manifest: Manifest, *, cpu: tuple[str, str], memory: tuple[str, str]) -> None:
    """Set requests and limits; upstream has none."""
    requests = {"cpu": cpu[0], "memory": memory[0]}
    file.add(
        manifest, (*_CONTAINER, "resources"), {"requests": requests, "limits": {"cpu": cpu[1], "memory": memory[1]}}
    )
