"""The training operator's objects: upstream's manifests, put together and patched as its own overlay does."""

from __future__ import annotations

from collections.abc import Iterator

from components.namespaces import addon_namespace
from components.training_operator.settings import TrainingOperatorSettings
from components.upstream import Path, Upstream, image_tag, mirrored
from gpuyard.manifests import Lifecycle, Manifest, Rendered, declare
from gpuyard.model.environment import Environment
from gpuyard.model.registry import Pin, Source

NAMESPACE = "kubeflow"
CERTIFICATE = "training-operator-webhook-cert"
KINDS = ("jaxjob", "paddlejob", "pytorchjob", "tfjob", "xgboostjob")
"""MPIJob is left out: mpi-operator owns a CRD of the same name, and a cluster can have only one of them."""

_NAME = "training-operator"
_IMAGE = "ghcr.io/kubeflow/training-v1/training-operator"
_INIT_IMAGE = "alpine"
_POD: Path = ("spec", "template", "spec")
_CONTAINER: Path = (*_POD, "containers", 0)


def training_operator(
    environment: Environment, settings: TrainingOperatorSettings, source: Source
) -> Iterator[Rendered]:
    """Yield everything that the training operator needs in a cluster."""
    origin = environment.origin("addons", "training-operator")
    yield from addon_namespace(environment, NAMESPACE, "restricted", origin, critical_pods=2)
    for kind in KINDS:
        crd = Upstream(_NAME, source, f"manifests/base/crds/kubeflow.org_{kind}s.yaml")
        yield declare(crd.take("CustomResourceDefinition", f"{kind}s.kubeflow.org"), origin=origin)
        crd.finish()
    for manifest in [*_access(source), _service(source), _deployment(environment, settings, source)]:
        yield declare(manifest, origin=origin)
    # The operator fills it; its role may update Secrets, not create them.
    yield declare(_certificate(), origin=origin, lifecycle=Lifecycle(ignore=("data",)))
    ca = Lifecycle(ignore=("webhooks[*].clientConfig.caBundle",))
    yield declare(_webhooks(source), origin=origin, lifecycle=ca)


def _access(source: Source) -> Iterator[Manifest]:
    accounts = Upstream(_NAME, source, "manifests/base/rbac/service-account.yaml")
    account = accounts.take("ServiceAccount", _NAME)
    accounts.add(account, ("metadata", "namespace"), NAMESPACE)
    accounts.finish()
    roles = Upstream(_NAME, source, "manifests/base/rbac/role.yaml")
    role = roles.take("ClusterRole", _NAME)
    roles.finish()
    bindings = Upstream(_NAME, source, "manifests/base/rbac/cluster-role-binding.yaml")
    binding = bindings.take("ClusterRoleBinding", _NAME)
    bindings.expect(binding, ("subjects", 0, "name"), _NAME)
    bindings.add(binding, ("subjects", 0, "namespace"), NAMESPACE)
    bindings.finish()
    yield from (account, role, binding)


def _service(source: Source) -> Manifest:
    file = Upstream(_NAME, source, "manifests/base/service.yaml")
    manifest = file.take("Service", _NAME)
    file.add(manifest, ("metadata", "namespace"), NAMESPACE)
    file.finish()
    return manifest


def _certificate() -> Manifest:
    metadata = {"name": CERTIFICATE, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}


def _webhooks(source: Source) -> Manifest:
    """Return the validating webhooks of all five kinds; the file is made for an overlay that names the Service."""
    file = Upstream(_NAME, source, "manifests/base/webhook/manifests.yaml")
    manifest = file.take("ValidatingWebhookConfiguration", "validating-webhook-configuration")
    # The name that the operator looks for when it writes its CA.
    file.replace(manifest, ("metadata", "name"), "validator.training-operator.kubeflow.org")
    for index, webhook in enumerate(file.read(manifest, ("webhooks",))):
        service: Path = ("webhooks", index, "clientConfig", "service")
        file.expect(manifest, (*service, "namespace"), "system")
        file.expect(manifest, (*service, "name"), "webhook-service")
        webhook["clientConfig"]["service"] |= {"namespace": NAMESPACE, "name": _NAME}
    file.finish()
    return manifest


def _deployment(environment: Environment, settings: TrainingOperatorSettings, source: Source) -> Manifest:
    file = Upstream(_NAME, source, "manifests/base/deployment.yaml")
    manifest = file.take("Deployment", _NAME)
    file.finish()
    file.add(manifest, ("metadata", "namespace"), NAMESPACE)
    file.set_image(manifest, _CONTAINER, _IMAGE, mirrored(environment, file.image(_IMAGE)))
    file.expect(manifest, (*_CONTAINER, "command"), ["/manager"])
    file.add(manifest, (*_CONTAINER, "args"), arguments(environment, settings, source))
    requests, limits = {"cpu": "100m", "memory": "256Mi"}, {"cpu": "2", "memory": "2Gi"}
    file.add(manifest, (*_CONTAINER, "resources"), {"requests": requests, "limits": limits})
    # It elects no leader (its role has no Leases), so there must never be two of it.
    file.expect(manifest, ("spec", "replicas"), 1)
    file.add(manifest, ("spec", "strategy"), {"type": "Recreate"})
    file.add(manifest, (*_POD, "priorityClassName"), "system-cluster-critical")
    # The image starts as root without need: it holds one static binary.
    user = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    file.add(manifest, (*_POD, "securityContext"), user)
    security: Path = (*_CONTAINER, "securityContext")
    file.expect(manifest, security, {"allowPrivilegeEscalation": False})
    file.add(manifest, (*security, "capabilities"), {"drop": ["ALL"]})
    file.add(manifest, (*security, "readOnlyRootFilesystem"), True)
    return manifest


def arguments(environment: Environment, settings: TrainingOperatorSettings, pin: Pin) -> list[str]:
    """Return the operator's arguments. Without the first, it ignores `schedulingPolicy` and starts gangs in parts."""
    gang = environment.scheduling.gang
    init_image = f"{_INIT_IMAGE}:{image_tag(_NAME, pin, _INIT_IMAGE)}"
    return [
        *([] if gang == "none" else [f"--gang-scheduler-name={gang}"]),
        f"--controller-threads={settings.threads}",
        *(f"--enable-scheme={kind}" for kind in KINDS),
        f"--pytorch-init-container-image={settings.init_image or mirrored(environment, init_image)}",
    ]
