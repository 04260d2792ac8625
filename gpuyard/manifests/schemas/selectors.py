"""Label selectors: whether one is well formed, and whether a workload selects its own pods.

Source: k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go, k8s.io/kubernetes/pkg/apis/apps/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuyard.manifests.schemas.shapes import Found, as_list, as_map, is_map
from gpuyard.manifests.schemas.text import key_problem, value_problem


def check_selector(selector: object) -> Iterator[Found]:
    """Check the keys, operators and values of a label selector."""
    if not is_map(selector):
        return
    for key, value in as_map(selector.get("matchLabels")).items():
        if problem := key_problem(key) or (value_problem(value) if isinstance(value, str) else ""):
            yield Found(("matchLabels", key), value, problem)
    for index, expression in enumerate(map(as_map, as_list(selector.get("matchExpressions")))):
        key, values, here = expression.get("key"), as_list(expression.get("values")), ("matchExpressions", index)
        if isinstance(key, str) and (problem := key_problem(key)):
            yield Found((*here, "key"), key, problem)
        match expression.get("operator"):
            case "In" | "NotIn" if not values:
                yield Found((*here, "values"), None, f"{expression['operator']} needs values")
            case "Exists" | "DoesNotExist" if values:
                yield Found((*here, "values"), values, f"{expression['operator']} takes no values")
            case "In" | "NotIn" | "Exists" | "DoesNotExist":
                pass
            case operator:
                yield Found((*here, "operator"), operator, "accepted: DoesNotExist, Exists, In, NotIn")


def check_selects_template(spec: dict[str, Any]) -> Iterator[Found]:
    """Check that a workload selects its own pods; one that does not is refused."""
    selector = spec.get("selector")
    if not is_map(selector):
        return
    labels = as_map(as_map(as_map(spec.get("template")).get("metadata")).get("labels"))
    wanted, expressions = as_map(selector.get("matchLabels")), as_list(selector.get("matchExpressions"))
    if not wanted and not expressions:
        yield Found(("spec", "selector"), selector, "an empty selector is refused; select the labels of the template")
    for key, value in wanted.items():
        if labels.get(key) != value:
            has = f"{key}={labels[key]}" if key in labels else f"no label {key}"
            steps = ("spec", "selector", "matchLabels", key)
            yield Found(steps, value, f"selects {key}={value}; the template has {has}")
    for index, expression in enumerate(expressions):
        if is_map(expression) and not _selects(expression, labels):
            values = ", ".join(map(str, as_list(expression.get("values"))))
            said = f"{expression.get('key')} {expression.get('operator')} {values}"
            steps = ("spec", "selector", "matchExpressions", index)
            yield Found(steps, expression, f"the template's labels do not match {said.rstrip()}")


def _selects(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key, values = str(expression.get("key")), as_list(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return not values or labels.get(key) in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return True  # said where selectors are checked
