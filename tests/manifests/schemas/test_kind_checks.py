"""One broken object for each thing that the API server checks of its own kinds beside their schemas.

Each is a good object with one field changed: found, named and located.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import yaml

from gpuyard.manifests.schemas.schema import Schemas

GOOD = {
    manifest["kind"]: manifest
    for manifest in yaml.safe_load_all("""\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  initContainers: [{name: wait, image: a}]
  containers:
    - name: main
      image: a
      env: [{name: LEVEL, value: info}, {name: TOKEN, valueFrom: {secretKeyRef: {name: a, key: a}}}]
      ports: [{name: web, containerPort: 80}, {containerPort: 81, hostPort: 0}]
      resources:
        requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 8, hugepages-2Mi: 1Gi}
        limits: {memory: 2Gi, nvidia.com/gpu: "8", hugepages-2Mi: 1Gi}
      volumeMounts: [{name: data, mountPath: /data}, {name: shm, mountPath: /dev/shm}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: a}}, {name: shm, emptyDir: {}}]
  topologySpreadConstraints:
    - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {level: info}
binaryData: {logo: AAAA}
---
apiVersion: v1
kind: Service
metadata: {name: a}
spec:
  selector: {app: a}
  ports: [{name: web, port: 80, targetPort: http}, {name: metrics, port: 81, targetPort: 9090, nodePort: 30000}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {app: a}}
  strategy: {rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: main, image: a}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: a}
spec:
  serviceName: a
  selector: {matchExpressions: [{key: app, operator: In, values: [a]}]}
  template:
    metadata: {labels: {app: a}}
    spec: {containers: [{name: main, image: a, volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  completions: 2
  completionMode: Indexed
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: a}
spec:
  schedule: "*/15 8-18 * * mon-fri"
  timeZone: Europe/Zurich
  jobTemplate: {spec: {template: {spec: {restartPolicy: OnFailure, containers: [{name: main, image: a}]}}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: a}
spec: {minAvailable: 50%, selector: {matchLabels: {app: a}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: "a:b"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: a}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "a:b"}
subjects: [{kind: Group, name: "team:a", apiGroup: rbac.authorization.k8s.io}, {kind: ServiceAccount, name: a}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}
subjects: [{kind: ServiceAccount, name: a, namespace: b}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: a}
spec:
  podSelector: {}
  policyTypes: [Ingress, Egress]
  ingress: [{from: [{namespaceSelector: {}}], ports: [{port: web}]}]
  egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}], ports: [{port: 443, endPort: 444}]}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a}
spec:
  rules:
    - http: {paths: [{path: /a, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a}
spec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: a}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: a}
value: 1000000000
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gangs.example.com}
spec:
  group: example.com
  names: {kind: Gang, plural: gangs}
  scope: Namespaced
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
    - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: check.example.com
    clientConfig: {service: {name: a, namespace: b}}
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
    admissionReviewVersions: [v1]
    sideEffects: None
    timeoutSeconds: 30
""")
}
CONTAINER = ("spec", "containers", 0)
LABEL = "a DNS-1123 label: lower-case letters, digits and '-', with a letter or digit first and last"
SUBDOMAIN = (
    "a DNS-1123 subdomain: lower-case letters, digits, '-' and '.', each part with a letter or digit at both ends"
)
VALUE = "a label value: letters, digits, '-', '_' and '.', with a letter or digit first and last, or nothing"
KNOWN = "cpu, memory, ephemeral-storage, hugepages-SIZE, or a device such as nvidia.com/gpu"
MISSING = "required field is missing"
DROPPED = object()

# kind, the field that changes, its value, where the violation is, what it says
BROKEN: list[tuple[str, tuple[str | int, ...], Any, str, str]] = [
    ("Pod", (*CONTAINER, "image"), DROPPED, "spec.containers[0].image", MISSING),
    ("Pod", (*CONTAINER, "name"), "wait", "spec.containers[0].name", "initContainers[0] has this name too"),
    ("Pod", (*CONTAINER, "name"), "Main", "spec.containers[0].name", f"`Main` must be {LABEL}"),
    ("Pod", (*CONTAINER, "env", 1, "name"), "LEVEL", "spec.containers[0].env[1].name",
     "containers[0].env[0] has this name too"),
    ("Pod", (*CONTAINER, "env", 1, "name"), "A=B", "spec.containers[0].env[1].name",
     "`A=B` must be printable ASCII characters without ="),
    ("Pod", (*CONTAINER, "env", 1, "value"), "x", "spec.containers[0].env[1].valueFrom",
     "`value` and `valueFrom` exclude each other"),
    ("Pod", (*CONTAINER, "ports", 1, "containerPort"), 80, "spec.containers[0].ports[1].containerPort",
     "ports[0] is 80 TCP too"),
    ("Pod", (*CONTAINER, "ports", 1, "hostPort"), 70000, "spec.containers[0].ports[1].hostPort",
     "70000 is no port; a port is 1 to 65535"),
    ("Pod", (*CONTAINER, "resources", "requests", "memory"), "3Gi", "spec.containers[0].resources.requests.memory",
     "the request 3Gi is above the limit 2Gi"),
    ("Pod", (*CONTAINER, "resources", "requests", "nvidia.com/gpu"), 4,
     'spec.containers[0].resources.requests["nvidia.com/gpu"]',
     "the request 4 must equal the limit 8; nvidia.com/gpu is never shared"),
    ("Pod", (*CONTAINER, "resources", "limits", "nvidia.com/gpu"), DROPPED,
     'spec.containers[0].resources.limits["nvidia.com/gpu"]',
     "a limit of nvidia.com/gpu is needed beside the request; it is never shared"),
    ("Pod", (*CONTAINER, "resources", "limits", "vendor.com/nic"), "500m",
     'spec.containers[0].resources.limits["vendor.com/nic"]', "500m is no whole number; devices are not divided"),
    ("Pod", (*CONTAINER, "resources", "limits", "gpu"), 1, "spec.containers[0].resources.limits.gpu",
     f"`gpu` is no resource of a container; accepted: {KNOWN}"),
    ("Pod", (*CONTAINER, "resources", "requests", "cpu"), -1, "spec.containers[0].resources.requests.cpu",
     "-1 is negative"),
    ("Pod", (*CONTAINER, "volumeMounts", 0, "name"), "date", "spec.containers[0].volumeMounts[0].name",
     "no volume of this pod is called date; volumes: data, shm"),
    ("Pod", (*CONTAINER, "volumeMounts", 0, "mountPath"), "/dev/shm", "spec.containers[0].volumeMounts[1].mountPath",
     "volumeMounts[0] is mounted there too"),
    ("Pod", ("spec", "volumes", 0, "hostPath"), {"path": "/"}, "spec.volumes[0]",
     "a volume has one source; this one has 2: hostPath, persistentVolumeClaim"),
    ("Pod", ("spec", "volumes", 2), {"name": "shm", "emptyDir": {}}, "spec.volumes[2].name",
     "volumes[1] has this name too"),
    ("Pod", ("spec", "volumes", 2), {"name": "s_m", "emptyDir": {}}, "spec.volumes[2].name", f"`s_m` must be {LABEL}"),
    ("Pod", ("spec", "topologySpreadConstraints", 0, "labelSelector", "matchLabels", "app"), "a b",
     "spec.topologySpreadConstraints[0].labelSelector.matchLabels.app",
     f"`a b` must be {VALUE}"),
    ("Pod", ("spec", "hostAliases"), [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}], "spec.hostAliases[1]",
     "item 0 has ip 1.1.1.1 too; it tells the items apart"),
    ("ConfigMap", ("data", "a/b"), "x", 'data["a/b"]',
     "`a/b` must be a file name: letters, digits, '-', '_' and '.', and no .. first"),
    ("ConfigMap", ("binaryData", "level"), "AAAA", "binaryData.level", "`level` stands in data too"),
    ("ConfigMap", ("data", "level"), "x" * 2**20, "data", "1048580 bytes in all; at most 1048576"),
    ("Service", ("metadata", "name"), "1a", "metadata.name",
     "`1a` must be a DNS-1035 label: lower-case letters, digits and '-', with a letter first and no '-' last"),
    ("Service", ("spec", "ports"), DROPPED, "spec.ports", MISSING),
    ("Service", ("spec", "type"), "ExternalName", "spec.externalName", f"{MISSING}: the type is ExternalName"),
    ("Service", ("spec", "ports", 1, "name"), DROPPED, "spec.ports[1].name", f"{MISSING}: there are several ports"),
    ("Service", ("spec", "ports", 1, "port"), 80, "spec.ports[1]",
     "item 0 has port 80, protocol TCP too; it tells the items apart"),
    ("Service", ("spec", "ports", 0, "targetPort"), "http_alt", "spec.ports[0].targetPort",
     "`http_alt` must be a port name: lower-case letters, digits and single '-', with at least one letter"),
    ("Service", ("spec", "ports", 1, "nodePort"), 99999, "spec.ports[1].nodePort",
     "99999 is no port; a port is 1 to 65535"),
    ("PersistentVolumeClaim", ("spec", "accessModes"), DROPPED, "spec.accessModes", MISSING),
    ("PersistentVolumeClaim", ("spec", "resources", "requests"), {}, "spec.resources.requests.storage", MISSING),
    ("PersistentVolumeClaim", ("spec", "resources", "limits"), {"storage": "1Mi"}, "spec.resources.requests.storage",
     "the request 1Gi is above the limit 1Mi"),
    ("Deployment", ("spec", "selector", "matchLabels", "app"), "b", "spec.selector.matchLabels.app",
     "selects app=b; the template has app=a"),
    ("Deployment", ("spec", "strategy", "rollingUpdate", "maxSurge"), "25", "spec.strategy.rollingUpdate.maxSurge",
     '"25" must be a whole number, or a percentage such as "25%"'),
    ("Deployment", ("spec", "strategy", "rollingUpdate", "maxUnavailable"), "120%",
     "spec.strategy.rollingUpdate.maxUnavailable", "120% is more than 100%"),
    ("Deployment", ("spec", "strategy", "rollingUpdate", "maxSurge"), -1, "spec.strategy.rollingUpdate.maxSurge",
     "-1 is negative"),
    ("Deployment", ("spec", "strategy", "rollingUpdate", "maxSurge"), "0%",
     "spec.strategy.rollingUpdate.maxUnavailable",
     "maxUnavailable and maxSurge are both 0, so that no pod could be replaced"),
    ("Deployment", ("spec", "template", "spec", "restartPolicy"), "Never", "spec.template.spec.restartPolicy",
     "Never is not accepted here; accepted: Always"),
    ("StatefulSet", ("spec", "selector", "matchExpressions", 0, "values"), [],
     "spec.selector.matchExpressions[0].values", "In needs values"),
    ("StatefulSet", ("spec", "volumeClaimTemplates", 0, "metadata", "name"), "date",
     "spec.template.spec.containers[0].volumeMounts[0].name",
     "no volume of this pod is called data; volumes: date"),
    ("StatefulSet", ("spec", "volumeClaimTemplates", 0, "spec", "accessModes"), [],
     "spec.volumeClaimTemplates[0].spec.accessModes", MISSING),
    ("Job", ("spec", "completions"), DROPPED, "spec.completions", f"{MISSING}: the completion mode is Indexed"),
    ("Job", ("spec", "template", "spec", "restartPolicy"), DROPPED, "spec.template.spec.restartPolicy",
     "Always is not accepted here; accepted: Never, OnFailure"),
    ("CronJob", ("metadata", "name"), "a" * 53, "metadata.name", "53 characters; at most 52"),
    ("CronJob", ("spec", "schedule"), "61 * * * *", "spec.schedule", "minute `61`: `61` is not one of 0 to 59"),
    ("CronJob", ("spec", "timeZone"), "Local", "spec.timeZone",
     "`Local` is no time zone; write one such as Europe/Zurich or Etc/UTC"),
    ("PodDisruptionBudget", ("spec", "minAvailable"), "most", "spec.minAvailable",
     '"most" must be a whole number, or a percentage such as "25%"'),
    ("PodDisruptionBudget", ("spec", "maxUnavailable"), 1, "spec.maxUnavailable",
     "excluded by minAvailable; keep one of the two"),
    ("PodDisruptionBudget", ("spec", "selector"), {"matchExpressions": [{"key": "a", "operator": "Exists",
     "values": ["b"]}]}, "spec.selector.matchExpressions[0].values", "Exists takes no values"),
    ("Role", ("metadata", "name"), "a/b", "metadata.name", "a name of an RBAC object is any text without / and %"),
    ("Role", ("rules", 0, "verbs"), [], "rules[0].verbs", "at least one verb is needed"),
    ("Role", ("rules", 0, "resources"), DROPPED, "rules[0].resources", "at least one is needed"),
    ("Role", ("rules", 0, "apiGroups"), [], "rules[0].apiGroups",
     'at least one is needed; "" is the group of pods and Secrets'),
    ("Role", ("rules", 0, "nonResourceURLs"), ["/a"], "rules[0].nonResourceURLs",
     "a Role has none; write a ClusterRole"),
    ("ClusterRole", ("rules", 0, "resources"), ["pods"], "rules[0].nonResourceURLs",
     "one rule is for URLs or for resources, not for both"),
    ("RoleBinding", ("roleRef", "kind"), "Group", "roleRef.kind", "accepted: ClusterRole, Role"),
    ("RoleBinding", ("roleRef", "name"), "a%b", "roleRef.name",
     "a name of an RBAC object is any text without / and %"),
    ("RoleBinding", ("roleRef", "apiGroup"), "rbac", "roleRef.apiGroup", "accepted: rbac.authorization.k8s.io"),
    ("RoleBinding", ("subjects", 0, "kind"), "Team", "subjects[0].kind", "accepted: Group, ServiceAccount, User"),
    ("RoleBinding", ("subjects", 1, "name"), "A b", "subjects[1].name", f"`A b` must be {SUBDOMAIN}"),
    ("RoleBinding", ("subjects", 1, "apiGroup"), "v1", "subjects[1].apiGroup",
     "a ServiceAccount is in no group; leave it out"),
    ("ClusterRoleBinding", ("roleRef", "kind"), "Role", "roleRef.kind", "accepted: ClusterRole"),
    ("ClusterRoleBinding", ("subjects", 0, "namespace"), DROPPED, "subjects[0].namespace", MISSING),
    ("NetworkPolicy", ("spec", "egress", 0, "ports", 0, "port"), 0, "spec.egress[0].ports[0].port",
     "0 is no port; a port is 1 to 65535"),
    ("NetworkPolicy", ("spec", "ingress", 0, "from", 0), {}, "spec.ingress[0].from[0]",
     "a peer needs a selector or an ipBlock; to allow all, leave the list out"),
    ("NetworkPolicy", ("spec", "egress", 0, "to", 0, "ipBlock", "cidr"), "10.0.0.0",
     "spec.egress[0].to[0].ipBlock.cidr", "`10.0.0.0` is no range such as 10.0.0.0/16"),
    ("NetworkPolicy", ("spec", "egress", 0, "to", 0, "ipBlock", "except", 0), "10.0.0.0/33",
     "spec.egress[0].to[0].ipBlock.except[0]", "`10.0.0.0/33` is no range such as 10.0.0.0/16"),
    ("Ingress", ("spec", "rules", 0, "http", "paths", 0, "path"), "a", "spec.rules[0].http.paths[0].path",
     "a path begins with /"),
    ("HorizontalPodAutoscaler", ("spec", "minReplicas"), 4, "spec.minReplicas", "4 is above maxReplicas 3"),
    ("PriorityClass", ("value",), 1000000001, "value",
     "1000000001 is above 1000000000; what is above is for system classes"),
    ("PriorityClass", ("metadata", "name"), "system-a", "metadata.name",
     "names that begin with system- are Kubernetes' own"),
    ("CustomResourceDefinition", ("metadata", "name"), "gang.example.com", "metadata.name",
     "`gang.example.com` must be gangs.example.com: the plural and the group"),
    ("CustomResourceDefinition", ("spec", "versions", 1, "storage"), True, "spec.versions",
     "exactly one version must have `storage: true`"),
    ("CustomResourceDefinition", ("spec", "versions", 1, "name"), "v1", "spec.versions[1].name",
     "spec.versions[0] has this name too"),
    ("ValidatingWebhookConfiguration", ("webhooks", 0, "name"), "check", "webhooks[0].name",
     "a webhook's name has at least three parts, such as check.example.com"),
    ("ValidatingWebhookConfiguration", ("webhooks", 0, "clientConfig", "url"), "https://a", "webhooks[0].clientConfig",
     "exactly one of url and service is needed"),
    ("ValidatingWebhookConfiguration", ("webhooks", 0, "timeoutSeconds"), 31, "webhooks[0].timeoutSeconds",
     "31 is not one of 1 to 30"),
]  # fmt: skip


@pytest.fixture(scope="module")
def schemas() -> Schemas:
    return Schemas("1.34", [])


def changed(manifest: dict[str, Any], steps: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    copy = deepcopy(manifest)
    target: Any = copy
    for step in steps[:-1]:
        target = target[step]
    if value is DROPPED:
        del target[steps[-1]]
    elif steps[-1] == len(target):
        target.append(value)
    else:
        target[steps[-1]] = value
    return copy


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_object(schemas: Schemas, kind: str):
    assert schemas.check(GOOD[kind]) == []


@pytest.mark.parametrize(
    ("kind", "steps", "value", "path", "message"),
    BROKEN,
    ids=[f"{kind}-{'.'.join(map(str, steps))}-{number}" for number, (kind, steps, *_) in enumerate(BROKEN)],
)
def test_a_broken_object(
    schemas: Schemas, kind: str, steps: tuple[str | int, ...], value: Any, path: str, message: str
):
    found = schemas.check(changed(GOOD[kind], steps, value))
    assert [(violation.path, violation.message) for violation in found] == [(path, message)]
