"""Which of Kubernetes' own API versions are deprecated since when, gone since when, and what takes their place.

Source: https://kubernetes.io/docs/reference/using-api/deprecation-guide/ and, of the same facts, the files
zz_generated.prerelease-lifecycle.go of k8s.io/api v0.37.1, v0.36.4 and v0.34.1. For each row the minor versions.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple


class Api(NamedTuple):
    """The life of one version of a kind, in minor versions of Kubernetes 1; `removed` is None where none is planned.

    replacement: the apiVersion to write, or apiVersion and kind; empty where nothing takes its place.
    """

    deprecated: int
    removed: int | None
    replacement: str


def api_life(api_version: str, kind: str) -> Api | None:
    """Return the life of a version of a built-in kind, or None when it is not deprecated by Kubernetes 1.37."""
    return _by_kind().get((api_version, kind))


@cache
def _by_kind() -> dict[tuple[str, str], Api]:
    return {
        (api_version, kind): Api(deprecated, removed, replacement)
        for api_version, kinds, deprecated, removed, replacement in _LIVES
        for kind in kinds.split()
    }


_WEBHOOKS = "MutatingWebhookConfiguration ValidatingWebhookConfiguration"
_POLICIES = "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
_MUTATING = "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding"
_FLOWS = "FlowSchema PriorityLevelConfiguration"
_ACCESS = "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"
_ROLES = "ClusterRole ClusterRoleBinding Role RoleBinding"
_DEVICES = "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice"
_REGISTRATION, _AUTHENTICATION = "admissionregistration.k8s.io", "authentication.k8s.io"
_AUTHORIZATION, _CERTIFICATES = "authorization.k8s.io", "certificates.k8s.io"
_FLOWCONTROL, _RBAC, _RESOURCE = "flowcontrol.apiserver.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io"

_LIVES: tuple[tuple[str, str, int, int | None, str], ...] = (
    ("v1", "ComponentStatus", 19, None, ""),
    ("v1", "Endpoints", 33, None, "discovery.k8s.io/v1, kind EndpointSlice"),
    (f"{_REGISTRATION}/v1beta1", _WEBHOOKS, 16, 22, f"{_REGISTRATION}/v1"),
    (f"{_REGISTRATION}/v1alpha1", _POLICIES, 29, 32, f"{_REGISTRATION}/v1"),
    (f"{_REGISTRATION}/v1beta1", _POLICIES, 31, 34, f"{_REGISTRATION}/v1"),
    (f"{_REGISTRATION}/v1alpha1", _MUTATING, 35, 38, f"{_REGISTRATION}/v1beta1"),
    (f"{_REGISTRATION}/v1beta1", _MUTATING, 37, 40, f"{_REGISTRATION}/v1"),
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", 16, 22, "apiextensions.k8s.io/v1"),
    ("apiregistration.k8s.io/v1beta1", "APIService", 19, 22, "apiregistration.k8s.io/v1"),
    ("apps/v1beta1", "ControllerRevision Deployment StatefulSet", 8, 16, "apps/v1"),
    ("apps/v1beta2", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", 9, 16, "apps/v1"),
    (f"{_AUTHENTICATION}/v1beta1", "TokenReview", 19, 22, f"{_AUTHENTICATION}/v1"),
    (f"{_AUTHENTICATION}/v1alpha1", "SelfSubjectReview", 29, 32, f"{_AUTHENTICATION}/v1"),
    (f"{_AUTHENTICATION}/v1beta1", "SelfSubjectReview", 30, 33, f"{_AUTHENTICATION}/v1"),
    (f"{_AUTHORIZATION}/v1beta1", _ACCESS, 19, 22, f"{_AUTHORIZATION}/v1"),
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler", 22, 25, "autoscaling/v2"),
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler", 23, 26, "autoscaling/v2"),
    ("batch/v1beta1", "CronJob", 21, 25, "batch/v1"),
    (f"{_CERTIFICATES}/v1beta1", "CertificateSigningRequest", 19, 22, f"{_CERTIFICATES}/v1"),
    (f"{_CERTIFICATES}/v1alpha1", "ClusterTrustBundle", 34, 37, f"{_CERTIFICATES}/v1beta1"),
    (f"{_CERTIFICATES}/v1beta1", "ClusterTrustBundle PodCertificateRequest", 37, 40, f"{_CERTIFICATES}/v1"),
    ("coordination.k8s.io/v1beta1", "Lease", 19, 22, "coordination.k8s.io/v1"),
    ("coordination.k8s.io/v1alpha2", "LeaseCandidate", 35, 38, "coordination.k8s.io/v1beta1"),
    ("coordination.k8s.io/v1beta1", "LeaseCandidate", 36, 39, ""),
    ("discovery.k8s.io/v1beta1", "EndpointSlice", 21, 25, "discovery.k8s.io/v1"),
    ("events.k8s.io/v1beta1", "Event", 22, 25, "events.k8s.io/v1"),
    ("extensions/v1beta1", "DaemonSet Deployment ReplicaSet", 8, 16, "apps/v1"),
    ("extensions/v1beta1", "NetworkPolicy", 9, 16, "networking.k8s.io/v1"),
    ("extensions/v1beta1", "PodSecurityPolicy", 10, 16, ""),
    ("extensions/v1beta1", "Ingress", 14, 22, "networking.k8s.io/v1"),
    (f"{_FLOWCONTROL}/v1beta1", _FLOWS, 23, 26, f"{_FLOWCONTROL}/v1"),
    (f"{_FLOWCONTROL}/v1beta2", _FLOWS, 26, 29, f"{_FLOWCONTROL}/v1"),
    (f"{_FLOWCONTROL}/v1beta3", _FLOWS, 29, 32, f"{_FLOWCONTROL}/v1"),
    ("networking.k8s.io/v1beta1", "Ingress IngressClass", 19, 22, "networking.k8s.io/v1"),
    ("networking.k8s.io/v1beta1", "IPAddress ServiceCIDR", 34, 37, "networking.k8s.io/v1"),
    ("node.k8s.io/v1beta1", "RuntimeClass", 22, 25, "node.k8s.io/v1"),
    ("policy/v1beta1", "PodDisruptionBudget", 21, 25, "policy/v1"),
    ("policy/v1beta1", "PodSecurityPolicy", 21, 25, ""),
    (f"{_RBAC}/v1beta1", _ROLES, 17, 22, f"{_RBAC}/v1"),
    (f"{_RESOURCE}/v1beta1", _DEVICES, 35, 38, f"{_RESOURCE}/v1"),
    (f"{_RESOURCE}/v1beta2", _DEVICES, 36, 39, f"{_RESOURCE}/v1"),
    (f"{_RESOURCE}/v1alpha3", "DeviceTaintRule", 36, 39, f"{_RESOURCE}/v1beta2"),
    ("scheduling.k8s.io/v1beta1", "PriorityClass", 14, 22, "scheduling.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", "CSIDriver StorageClass VolumeAttachment", 19, 22, "storage.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", "CSINode", 17, 22, "storage.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", "CSIStorageCapacity", 24, 27, "storage.k8s.io/v1"),
    ("storage.k8s.io/v1alpha1", "VolumeAttributesClass", 32, 35, "storage.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", "VolumeAttributesClass", 34, 37, "storage.k8s.io/v1"),
    ("storagemigration.k8s.io/v1alpha1", "StorageVersionMigration", 33, 35, "storagemigration.k8s.io/v1beta1"),
    ("storagemigration.k8s.io/v1beta1", "StorageVersionMigration", 37, 40, "storagemigration.k8s.io/v1"),
)
"""apiVersion, kinds, and what Api says. Of alpha versions only those that lived on for several releases."""
