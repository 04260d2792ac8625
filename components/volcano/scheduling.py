"""The scheduler's own configuration: which actions it takes in a cycle, and which plugins decide in them."""

from __future__ import annotations

from typing import Any

from components.volcano.settings import VolcanoSettings
from gpuyard.model.environment import GPU


def actions(settings: VolcanoSettings) -> list[str]:
    """Return the actions of one scheduling cycle in order.

    `enqueue` keeps a job without pods until its queue has room for the whole gang. `reclaim` takes back what a queue
    borrowed beyond its deserved share; without it the capacity plugin only lends. Upstream's default has neither
    reclaim nor preempt, so that priorities and shares would have no effect on what already runs.
    """
    return ["enqueue", "allocate", "backfill", "reclaim", *(["preempt"] if settings.preemption else [])]


def scheduler_configuration(settings: VolcanoSettings) -> dict[str, Any]:
    """Return the content of volcano-scheduler.conf.

    Plugins of the first tier that name victims are not overruled by the second, so everything that protects pods stands
    in the first: a pod is reclaimed when it is neither critical (conformance) nor within what its queue deserves
    (capacity), and preempted when it is neither critical nor of equal priority.

    The gang plugin takes no part in choosing victims: it protects every pod of a job whose gang is complete, and a
    training job always is, so nothing could ever be reclaimed or preempted.

    Left out: `overcommit`, which lets 20 % more jobs create pods than the cluster can hold; hierarchical queues, with
    which one job in a queue that has children (`root`) stops the scheduling of all.

    Source: pkg/scheduler/plugins and framework/session_plugins.go (Reclaimable, Preemptable).
    """
    return {
        "actions": ", ".join(actions(settings)),
        "tiers": [
            {
                "plugins": [
                    {"name": "priority"},
                    {"name": "gang", "enablePreemptable": False, "enableReclaimable": False},
                    {"name": "conformance"},
                    {"name": "capacity"},
                ]
            },
            {
                "plugins": [
                    {"name": "drf", "enablePreemptable": False},
                    {"name": "predicates"},
                    # Full nodes first, so that whole nodes stay free for gangs that take whole nodes.
                    {"name": "nodeorder", "arguments": {"leastrequested.weight": 0, "mostrequested.weight": 1}},
                    {
                        "name": "binpack",
                        "arguments": {
                            "binpack.weight": 10,
                            "binpack.cpu": 1,
                            "binpack.memory": 1,
                            "binpack.resources": GPU,
                            f"binpack.resources.{GPU}": 10,
                        },
                    },
                ]
            },
        ],
    }
