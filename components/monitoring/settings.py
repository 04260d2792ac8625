"""What a person may set under `addons: monitoring:`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from gpuyard.manifests.quantity import parse_quantity
from gpuyard.model.settings import Duration, Quantity, Settings, seconds


def _two_hours(value: str) -> str:
    # Prometheus writes its data in blocks of two hours; a shorter retention would delete what it just wrote.
    if seconds(value) < 2 * 3600:
        raise ValueError("at least 2h")
    return value


def _ten_gib(value: str) -> str:
    if parse_quantity(value) < 10 * 2**30:
        raise ValueError("at least 10Gi")
    return value


class MonitoringSettings(Settings):
    """Prometheus, what it scrapes and its alerts.

    retention:     how long samples are kept.
    size:          of the volume; the oldest samples go when it is nearly full, whatever their age.
    storage-class: a class of `storage.classes` for the volume; left out, the cluster's default class.
    """

    retention: Annotated[Duration, AfterValidator(_two_hours)] = "30d"
    size: Annotated[Quantity, AfterValidator(_ten_gib)] = "200Gi"
    storage_class: str | None = None
