"""The rules that a CRD brings in CEL (`x-kubernetes-validations`), evaluated as the API server does on creation.

Source: the Kubernetes documentation, "Extend the Kubernetes API with CustomResourceDefinitions", validation rules, and
k8s.io/apiserver/pkg/cel/escaping.go. The engine is Google's, in the package cel-expr-python. It knows the language and
its extensions for text, bindings and optional values. Functions that Kubernetes adds (quantity, ip, url, find,
isSorted, ...) it does not know: a rule with one of them is not run, and is named.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuyard.manifests.data import below
from gpuyard.manifests.schemas.places import Place, Tree
from gpuyard.manifests.schemas.shapes import Found, is_list, is_map

if TYPE_CHECKING:
    from cel_expr_python.cel import Env, Expression

# `re` compiles each when it is first used.
_OLD = r"\boldSelf\b"
_RESERVED = frozenset(
    ["true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
     "let", "loop", "package", "namespace", "return", "var", "void", "while"]
)  # fmt: skip
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = r"__|[-./]"
_FIELD = r"\.([A-Za-z_][A-Za-z0-9_]*)|\['([^']*)'\]"
_UNDECLARED = r"undeclared reference to '([^']*)'"
# What Kubernetes, which knows all types beforehand, holds against the object and not against the rule.
_OBJECT_IS_WRONG = ("key not found", "index error")


class Unrun(NamedTuple):
    """A rule of a CRD without a verdict: of which kind (`apiVersion/Kind`), where, its text, and why it is not run."""

    kind: str
    path: str
    rule: str
    reason: str


class Failure(NamedTuple):
    """Why an expression has no value."""

    reason: str


class Engine:
    """Compiles each expression once, when it is first needed; the package is loaded then."""

    def __init__(self) -> None:
        self._compiled: dict[str, Expression | Failure] = {}

    def evaluate(self, text: str, data: Mapping[str, Any]) -> Any:
        """Return the value of an expression, or a Failure."""
        expression = self.compile(text)
        if isinstance(expression, Failure):
            return expression
        result = expression.eval(data=data)
        if result.type().name() != "ERROR":
            return result.plain_value()
        # An error is `CODE: Text`.
        what = str(result.value()).partition(": ")[2]
        return Failure(f"{what[:1].lower()}{what[1:]}")

    def compile(self, text: str) -> Expression | Failure:
        """Return an expression, or why the engine cannot take it."""
        if text not in self._compiled:
            try:
                self._compiled[text] = self._environment.compile(text)
            except RuntimeError as error:  # all that the engine raises
                names = dict.fromkeys(re.findall(_UNDECLARED, str(error)))
                reason = f"the engine has no {', '.join(names)}" if names else " ".join(str(error).split())
                self._compiled[text] = Failure(reason)
        return self._compiled[text]

    @cached_property
    def _environment(self) -> Env:
        # Loaded late: most objects have no rule. Beside its modules stand stubs, which pyright sees one by one alone.
        from cel_expr_python import cel  # pyright: ignore[reportMissingTypeStubs] - see above
        from cel_expr_python.ext import (  # pyright: ignore[reportMissingTypeStubs] - see above
            ext_bindings,
            ext_optional,
            ext_strings,
        )

        extensions = [ext_bindings.ExtBindings(), ext_optional.ExtOptional(), ext_strings.ExtStrings()]
        return cel.NewEnv(variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN}, extensions=extensions)


def check_rules(engine: Engine, place: Place, value: Any, unrun: dict[str, str]) -> Iterator[Found]:
    """Check a value by the rules at its place; the text of a rule without a verdict goes to `unrun`, with the reason.

    A rule about the old object says nothing of a new one.
    """
    rules = [rule for rule in place.rules if not compares_states(rule)]
    if not rules:
        return
    data = {"self": prepared(value, place.shape)}
    for rule in rules:
        found = run_rule(engine, rule, data, value)
        if isinstance(found, Failure):
            unrun[rule["rule"]] = found.reason
        elif found:
            yield found


def compares_states(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule is about a change: it compares a value with the one before."""
    return _names_old_state(rule["rule"])


@lru_cache(maxsize=1024)
def _names_old_state(text: str) -> bool:
    return bool(re.search(_OLD, text))


def run_rule(
    engine: Engine, rule: Mapping[str, Any], data: Mapping[str, Any], value: Any, within: str = "{}"
) -> Found | Failure | None:
    """Return what a rule finds, None where it is kept, or why there is no verdict.

    value: what it is about, as it is written. within: an expression around those of the rule.
    """
    text: str = rule["rule"]
    result = engine.evaluate(within.replace("{}", text), data)
    if result is True:
        return None
    if isinstance(result, Failure):
        if not result.reason.startswith(_OBJECT_IS_WRONG):
            return result
        return Found((), value, f"{result.reason}, which this rule needs: {one_line(text)}")
    steps = tuple(name or word for name, word in re.findall(_FIELD, rule.get("fieldPath", "")))
    return Found(steps, _at(value, steps), _message(engine, rule, data, within))


def unrun_rules(engine: Engine, kind: str, tree: Tree) -> Iterator[Unrun]:
    """Yield the rules of a kind that are never run, in the order of the CRD."""
    for path, rule in _rules(tree, ""):
        text = rule["rule"]
        if compares_states(rule):
            yield Unrun(kind, path, text, "it compares with the object before a change")
        elif isinstance(failure := engine.compile(text), Failure):
            yield Unrun(kind, path, text, failure.reason)


def _rules(tree: Tree, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from ((path, rule) for rule in tree.get("rules", ()))
    for name, child in tree.get("fields", {}).items():
        yield from _rules(child, below(path, name))
    for field, shown in (("items", "[]"), ("values", "[*]")):
        if field in tree:
            yield from _rules(tree[field], path + shown)


def _message(engine: Engine, rule: Mapping[str, Any], data: Mapping[str, Any], within: str) -> str:
    if "messageExpression" in rule:
        made = engine.evaluate(within.replace("{}", rule["messageExpression"]), data)
        if isinstance(made, str) and made.strip():
            return made.strip()
    return rule.get("message", "").strip() or f"failed rule: {one_line(rule['rule'])}"


def one_line(text: str) -> str:
    """Return a rule as one line."""
    return " ".join(text.split())


def _at(value: Any, steps: Iterable[str]) -> Any:
    for step in steps:
        value = value.get(step) if is_map(value) else None
    return value


def prepared(value: Any, shape: Tree) -> Any:
    """Return a value as rules see it: defaults filled in, fields under the names CEL can take.

    The engine takes no times from Python, so they stay text: a rule that compares one with a time has no verdict.
    """
    if is_map(value):
        fields: Mapping[str, Tree] = shape.get("properties", {})
        rest: Tree = shape.get("additionalProperties", {})
        made = {
            identifier(name) if name in fields else name: prepared(child, fields.get(name, rest))
            for name, child in value.items()
        }
        for name, field in fields.items():
            if name not in value and "default" in field:
                made[identifier(name)] = prepared(field["default"], field)
        return made
    if is_list(value):
        return [prepared(child, shape.get("items", {})) for child in value]
    if isinstance(value, int) and not isinstance(value, bool) and shape.get("type") == "number":
        return float(value)
    if isinstance(value, str) and shape.get("format") == "byte":
        with contextlib.suppress(ValueError):  # what cannot be read, the schema refuses
            return base64.b64decode(value)
    return value


def identifier(name: str) -> str:
    """Return a field's name as rules write it: `__namespace__`, `storage__dash__class`."""
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(_ESCAPED, lambda match: _ESCAPES[match[0]], name)
