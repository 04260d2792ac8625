"""Amounts of resources: quantities, and what a container may ask for.

Source: k8s.io/kubernetes/pkg/apis/core/validation (validateResourceRequirements) and pkg/apis/core/helper.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeGuard

from gpuyard.manifests.quantity import parse_quantity
from gpuyard.manifests.schemas.shapes import Found, as_map, is_map
from gpuyard.manifests.schemas.text import key_problem

_STANDARD = frozenset(["cpu", "memory", "ephemeral-storage"])


def check_amounts(amounts: object, *steps: str | int) -> Iterator[Found]:
    """Check a map of quantities by resource, such as the hard limits of a quota."""
    for resource, amount in as_map(amounts).items():
        if problem := amount_problem(amount):
            yield Found((*steps, resource), amount, key_problem(resource) or problem, malformed=True)
        elif problem := key_problem(resource):
            yield Found((*steps, resource), amount, problem)


def check_resources(resources: dict[str, Any], *steps: str | int) -> Iterator[Found]:
    """Check `requests` and `limits`, of whatever has them."""
    requests, limits = resources.get("requests"), resources.get("limits")
    wrong = False
    for found in (*check_amounts(limits, *steps, "limits"), *check_amounts(requests, *steps, "requests")):
        wrong = True
        yield found
    if wrong or not is_map(requests) or not is_map(limits):
        return
    for resource, amount in requests.items():
        limit = limits.get(resource)
        if limit is not None and limit != amount and parse_quantity(amount) > parse_quantity(limit):
            yield Found((*steps, "requests", resource), amount, f"the request {amount} is above the limit {limit}")


def check_container_resources(resources: Any, *steps: str | int) -> Iterable[Found]:
    """Check what a container asks for: known resources, whole devices, and the same limit for what is never shared."""
    # All containers together ask for few different amounts.
    data = marshal.dumps(resources, 2)
    found = _KNOWN.get(data)
    if found is None:
        if len(_KNOWN) > _MOST_KNOWN:
            _KNOWN.clear()
        found = _KNOWN[data] = tuple(_check_container(as_map(resources)))
    return [each.below(*steps) for each in found] if found else ()


_KNOWN: dict[bytes, tuple[Found, ...]] = {}
"""What was found, by the resources as `marshal` writes them, which is the quickest."""

_MOST_KNOWN = 1000


def _check_container(resources: dict[str, Any]) -> Iterator[Found]:
    requests, limits = as_map(resources.get("requests")), as_map(resources.get("limits"))
    found = tuple(check_resources(resources))
    yield from found
    for field, amounts in (("limits", limits), ("requests", requests)):
        for resource, amount in amounts.items():
            if _is_amount(amount) and (problem := _container_problem(resource, amount)):
                yield Found((field, resource), amount, problem)
    if found:
        return
    for resource, amount in requests.items():
        if _is_shared(resource):
            continue
        limit = limits.get(resource)
        if limit is None:
            message = f"a limit of {resource} is needed beside the request; it is never shared"
            yield Found(("limits", resource), None, message)
        elif limit != amount and parse_quantity(limit) != parse_quantity(amount):
            message = f"the request {amount} must equal the limit {limit}; {resource} is never shared"
            yield Found(("requests", resource), amount, message)


def amount_problem(amount: object) -> str:
    """Return what is wrong with a quantity that may not be negative, or ""."""
    return _quantity_problem(amount) if _is_amount(amount) else "must be a quantity: 500m, 4, 64Gi"


def _is_amount(amount: object) -> TypeGuard[str | int | float]:
    return isinstance(amount, (str, int, float)) and not isinstance(amount, bool)


@lru_cache(maxsize=4096)
def _quantity_problem(amount: str | float) -> str:
    try:
        return "" if parse_quantity(amount) >= 0 else f"{amount} is negative"
    except ValueError as error:
        return f"`{amount}` is no quantity: {error}"


@lru_cache(maxsize=4096)
def _container_problem(resource: str, amount: str | float) -> str:
    if _quantity_problem(amount) or key_problem(resource):
        return ""  # said already
    if "/" not in resource and resource not in _STANDARD and not resource.startswith("hugepages-"):
        known = "cpu, memory, ephemeral-storage, hugepages-SIZE, or a device such as nvidia.com/gpu"
        return f"`{resource}` is no resource of a container; accepted: {known}"
    if "/" in resource and parse_quantity(amount) % 1:
        return f"{amount} is no whole number; devices are not divided"
    return ""


@lru_cache(maxsize=1024)
def _is_shared(resource: str) -> bool:
    """Return whether pods may together ask for more than there is: CPU and memory, but no device and no huge page."""
    prefix, slash, _ = resource.rpartition("/")
    native = not slash or prefix == "kubernetes.io" or prefix.endswith(".kubernetes.io")
    return native and not resource.startswith("hugepages-")
