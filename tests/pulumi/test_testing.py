"""The engine in this process: what it sees, and that it does not let a mistake pass."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from gpuyard.pulumi.testing import SECRET, DuplicateUrnError, Registered, run

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"


def registered(props: dict[str, object], **options: Any) -> Registered:
    """Return the one resource of a program."""

    def program() -> None:
        pulumi.CustomResource(CONFIG_MAP, "one", props, pulumi.ResourceOptions(**options))

    (one,) = run(program, stack="test").resources
    return one


def test_whole_numbers_stay_whole() -> None:
    assert registered({"replicas": 2, "share": 0.5, "uid": 2**53, "zero": 0, "on": True}).props == {
        "replicas": 2,
        "share": 0.5,
        "uid": 2**53,
        "zero": 0,
        "on": True,
    }
    assert isinstance(registered({"replicas": 2}).props["replicas"], int)


def test_empty_maps_and_lists_stay() -> None:
    assert registered({"emptyDir": {}, "args": []}).props == {"emptyDir": {}, "args": []}


def test_exactly_the_secret_leaf_is_masked() -> None:
    def program() -> None:
        data = {"open": "a", "closed": pulumi.Output.secret("b")}
        pulumi.CustomResource(CONFIG_MAP, "one", {"data": data})

    (one,) = run(program, stack="test").resources
    assert one.props == {"data": {"open": "a", "closed": SECRET}}


def test_options_are_seen() -> None:
    one = registered({}, protect=True, retain_on_delete=True, delete_before_replace=True, ignore_changes=["data"])

    assert (one.protect, one.retain_on_delete, one.delete_before_replace) == (True, True, True)
    assert one.ignore_changes == ("data",)


def test_resources_are_sorted_by_urn_and_know_their_dependencies() -> None:
    def program() -> None:
        first = pulumi.CustomResource(CONFIG_MAP, "z", {})
        pulumi.CustomResource(CONFIG_MAP, "a", {}, pulumi.ResourceOptions(depends_on=[first]))

    a, z = run(program, stack="test").resources

    assert (a.name, z.name) == ("a", "z")
    assert a.dependencies == (z.urn,)
    assert z.dependencies == ()


def test_outputs_of_components_are_seen() -> None:
    class Box(pulumi.ComponentResource):
        def __init__(self) -> None:
            super().__init__("test:box:Box", "box")
            self.register_outputs({"names": pulumi.Output.from_input(["a"]), "count": 1})

    done = run(lambda: Box(), stack="test")

    assert [outputs for urn, outputs in done.outputs.items() if urn.endswith("::box")] == [{"names": ["a"], "count": 1}]


def test_configuration_is_seen() -> None:
    seen: list[str] = []

    run(lambda: seen.append(pulumi.Config("gpuyard").require("x")), stack="test", config={"gpuyard:x": "1"})

    assert seen == ["1"]


def test_stack_and_preview_are_seen() -> None:
    seen: list[object] = []

    for preview in (True, False):
        run(lambda: seen.append((pulumi.get_stack(), pulumi.runtime.is_dry_run())), stack="test", preview=preview)

    assert seen == [("test", True), ("test", False)]


def test_a_duplicate_urn_is_an_error() -> None:
    def program() -> None:
        pulumi.CustomResource(CONFIG_MAP, "one", {})
        pulumi.CustomResource(CONFIG_MAP, "one", {})

    with pytest.raises(DuplicateUrnError, match=r"^urn:pulumi:test::.*::one is registered twice$"):
        run(program, stack="test")


def test_one_run_does_not_see_another() -> None:
    def program() -> None:
        pulumi.CustomResource(CONFIG_MAP, "one", {})

    assert run(program, stack="a").resources[0].urn != run(program, stack="b").resources[0].urn
    assert len(run(program, stack="a").resources) == 1


def test_an_error_of_the_program_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        run(lambda: 1 // 0, stack="test")


def test_an_error_inside_an_apply_is_raised() -> None:
    def program() -> None:
        one = pulumi.CustomResource(CONFIG_MAP, "one", {})
        one.id.apply(lambda _: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        run(program, stack="test")


def test_a_program_that_never_ends_is_stopped_and_what_came_last_is_named() -> None:
    async def never() -> None:
        import asyncio

        await asyncio.Event().wait()

    def program() -> None:
        pulumi.CustomResource(CONFIG_MAP, "one", {})
        pulumi.Output.from_input(never()).apply(lambda _: None)

    with pytest.raises(TimeoutError, match=r"not done after 1 s; registered last: urn:pulumi:test::.*::one"):
        run(program, stack="test", timeout=1)


def test_a_read_or_a_call_has_no_answer() -> None:
    with pytest.raises(NotImplementedError, match="the program called aws:ec2:getAmi"):
        run(lambda: pulumi.runtime.invoke("aws:ec2:getAmi", {}), stack="test")
