"""How simulated nodes and pods live: KWOK's own stages, and ours for pods that end.

A kwokctl configuration with any Stage drops all defaults, so those are read from the KWOK module and handed over too.
Upstream's `pod-complete` is left out: it ends the pods of everything called Job at once, Volcano's jobs included.
"""

from __future__ import annotations

import copy
from typing import Any

from gpuyard.manifests import Manifest
from gpuyard.model.registry import Source
from gpuyard.sandbox.programs import PROGRAMS

RUN_FOR = "sandbox.gpuyard.dev/run-for"
"""On a job or its pod template: how long the pods of the job run together, as `8s`."""

ENDS_AFTER = "sandbox.gpuyard.dev/ends-after"
"""On a running pod, set by the sandbox: the pod succeeds this long after the annotation came."""

_DEFAULTS = (
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "kustomize/stage/pod/fast/pod-ready.yaml",
    "kustomize/stage/pod/fast/pod-delete.yaml",
)

_SUCCEEDED = """
{{ $now := Now }}
{{ $root := . }}
phase: Succeeded
conditions:
{{ range .status.conditions }}
- type: {{ .type | Quote }}
  lastTransitionTime: {{ $now | Quote }}
  {{ if or (eq .type "Ready") (eq .type "ContainersReady") }}
  status: "False"
  reason: PodCompleted
  {{ else }}
  status: {{ .status | Quote }}
  {{ end }}
{{ end }}
containerStatuses:
{{ range $index, $item := .spec.containers }}
{{ $origin := index $root.status.containerStatuses $index }}
- image: {{ $item.image | Quote }}
  name: {{ $item.name | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: 0
      reason: Completed
      startedAt: {{ $origin.state.running.startedAt | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
"""


def stages(kwok: Source) -> list[Manifest]:
    """Return every Stage of the sandbox."""
    defaults = [_without_processes(stage) for path in _DEFAULTS for stage in kwok.manifests(path)]
    ends_when_told: dict[str, Any] = {"key": f'.metadata.annotations["{ENDS_AFTER}"]', "operator": "Exists"}
    of_a_batch_job: dict[str, Any] = {
        "key": '.metadata.ownerReferences.[] | select( .kind == "Job" ) | .apiVersion',
        "operator": "In",
        "values": ["batch/v1"],
    }
    return [
        *defaults,
        _end("pod-end", ends_when_told, {"durationFrom": {"expressionFrom": ends_when_told["key"]}}),
        _end("batch-pod-end", of_a_batch_job, {"durationMilliseconds": 500}),
    ]


def _without_processes(stage: Manifest) -> Manifest:
    """Return upstream's stage that makes pods run without the pods of our processes: those tell how it really goes."""
    if stage["metadata"]["name"] != "pod-ready":
        return stage
    programs = "|".join(sorted(PROGRAMS))
    ours = (
        'select(any(.metadata.ownerReferences[]?; .kind == "ReplicaSet")) | .spec.containers[].image '
        f'| select(test("(^|/)({programs})($|[:@])"))'
    )
    stage = copy.deepcopy(stage)
    stage["spec"]["selector"]["matchExpressions"].append({"key": ours, "operator": "DoesNotExist"})
    return stage


def _end(name: str, condition: dict[str, Any], delay: dict[str, Any]) -> Manifest:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {
                "matchExpressions": [
                    {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
                    {"key": ".status.phase", "operator": "In", "values": ["Running"]},
                    condition,
                ]
            },
            "delay": delay,
            "next": {"statusTemplate": _SUCCEEDED},
        },
    }
