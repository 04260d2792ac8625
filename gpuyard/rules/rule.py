"""What a rule is: a function over one object or the whole render, registered with why it exists and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from gpuyard.errors import Origin
from gpuyard.manifests import Identity, Rendered

if TYPE_CHECKING:
    from gpuyard.model.environment import Environment

T = TypeVar("T")

Severity = Literal["error", "warning"]


class Finding(NamedTuple):
    """One thing that a rule found.

    object:  `Kind namespace/name`.
    path:    JSON path inside the object: "spec.runPolicy.schedulingPolicy.minAvailable". Empty for the whole object.
    message: what is wrong on the first line; the arithmetic on the lines below.
    origin:  the file and line that caused it; None when the object comes from no file of the user.
    written: what stands at `origin`: "nodes: 12". Empty where the object's path says more.
    value:   what stands at `path`, safe to show: credentials are `Hidden`. None where nothing does, or no one value is
             wrong.
    """

    rule: str
    severity: Severity
    object: str
    path: str
    message: str
    fix: str = ""
    origin: Origin | None = None
    written: str = ""
    value: Any = None


class Unjudged(NamedTuple):
    """Something on which a rule has no verdict, because a source that it would have to see was left out.

    A check yields it in place of a hit. It is no finding: it changes no exit code, and the run lists it.
    """

    object: str
    reason: str
    rule: str = ""
    """Filled in by `Rules.judge`."""


class Hit(NamedTuple):
    """What a check yields: an object, a JSON path inside it, and what is wrong there; see `Finding`.

    origin: a better place than the object's own, where one is known.
    fix:    what to do here; left out, what the rule says in general.
    malformed: whether rules that read the object may fall over it; those that come later do not get to see it.
    """

    rendered: Rendered
    path: str
    message: str
    origin: Origin | None = None
    fix: str = ""
    written: str = ""
    value: Any = None
    malformed: bool = False


@dataclass(frozen=True)
class Context:
    """What a rule may look at: the objects of one environment, all layers, and the environment itself.

    skipped: names of the sources that were left out. What they would have brought is missing from `objects`, so a rule
             that cannot tell whether something is wrong or just left out yields `Unjudged`, never a hit.
    malformed: objects that are there and that nobody can read; a rule before has said so.
    """

    objects: tuple[Rendered, ...]
    environment: Environment
    skipped: tuple[str, ...] = ()
    malformed: tuple[Rendered, ...] = ()

    def once(self, work: Callable[[Context], T]) -> T:
        """Return what a function makes of this context; it is called once, however many rules ask."""
        if work not in self._made:
            self._made[work] = work(self)
        return self._made[work]

    @cached_property
    def _made(self) -> dict[Callable[[Context], Any], Any]:
        return {}

    @cached_property
    def by_kind(self) -> dict[str, list[Rendered]]:
        """Objects by kind, each list in the order of the render."""
        kinds: dict[str, list[Rendered]] = {}
        for rendered in self.objects:
            kinds.setdefault(rendered.manifest["kind"], []).append(rendered)
        return kinds

    @cached_property
    def by_identity(self) -> dict[Identity, Rendered]:
        return {rendered.identity: rendered for rendered in self.objects}


class Rule(NamedTuple):
    """A check with its reasons.

    id:     words joined by dashes: "gang-min-available".
    scope:  "object": `check(rendered, context)` is called for each object; "render": `check(context)` once.
    why:    what goes wrong in a cluster without it, one sentence.
    fix:    what to do, as an imperative.
    source: where the fact can be read.
    """

    id: str
    scope: Literal["object", "render"]
    severity: Severity
    why: str
    fix: str
    source: str
    check: Callable[..., Iterable[Hit | Unjudged]]


class Verdict(NamedTuple):
    """What a run says: findings sorted by place, and what could not be judged."""

    findings: list[Finding]
    unjudged: list[Unjudged]


@dataclass
class Rules:
    """The rules of a project, by id."""

    rules: dict[str, Rule] = field(default_factory=dict[str, Rule])

    def add(self, *rules: Rule) -> None:
        """Add rules; an id that is taken is a mistake in the project and raises ValueError."""
        for rule in rules:
            if rule.id in self.rules:
                raise ValueError(f"rule {rule.id} is registered twice")
            self.rules[rule.id] = rule

    def judge(self, context: Context) -> Verdict:
        """Run all rules, in the order in which they were added, over all objects; see `Hit.malformed`."""
        findings: list[Finding] = []
        unjudged: list[Unjudged] = []
        for rule in self.rules.values():
            results: Iterable[Hit | Unjudged]
            if rule.scope == "render":
                results = rule.check(context)
            else:
                results = (result for rendered in context.objects for result in rule.check(rendered, context))
            malformed: dict[int, Rendered] = {}
            for result in results:
                if isinstance(result, Unjudged):
                    unjudged.append(result._replace(rule=rule.id))
                    continue
                findings.append(_finding(rule, result))
                if result.malformed:
                    malformed[id(result.rendered)] = result.rendered
            if malformed:
                rest = tuple(one for one in context.objects if id(one) not in malformed)
                context = replace(context, objects=rest, malformed=(*context.malformed, *malformed.values()))
        return Verdict(sorted(findings, key=_place), sorted(unjudged, key=lambda u: (u.rule, u.object, u.reason)))

    def run(self, context: Context) -> list[Finding]:
        """Return the findings alone."""
        return self.judge(context).findings


def _finding(rule: Rule, hit: Hit) -> Finding:
    return Finding(
        rule=rule.id,
        severity=rule.severity,
        object=str(hit.rendered.identity),
        path=hit.path,
        message=hit.message,
        fix=hit.fix or rule.fix,
        origin=hit.origin or hit.rendered.origin,
        written=hit.written,
        value=hit.value,
    )


def _place(finding: Finding) -> tuple[str | int, ...]:
    origin = finding.origin or Origin("")
    return finding.severity, origin.file, origin.line, finding.object, finding.path, finding.rule, finding.message
