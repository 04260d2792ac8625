"""The policy pack as Pulumi starts it: a process of its own that speaks the analyzer protocol."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import grpc
import pytest
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from gpuyard.manifests import Rendered
from gpuyard.pulumi.register import inputs, resource_name, resource_type
from infra import assemble

PACK = assemble.ROOT / "policies"


@pytest.fixture(scope="module")
def pack() -> Iterator[analyzer_pb2_grpc.AnalyzerStub]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:0", str(PACK)]
    with subprocess.Popen(command, cwd=PACK, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port.isdigit(), "the pack prints its port when it is ready"
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield analyzer_pb2_grpc.AnalyzerStub(channel)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def jobs() -> list[Rendered]:
    """Return the jobs layer of the sandbox."""
    return [one for one in assemble.build(assemble.load("sandbox")).objects if one.layer == "jobs"]


def analyze(
    pack: analyzer_pb2_grpc.AnalyzerStub, rendered: list[Rendered], stack: str
) -> list[analyzer_pb2.AnalyzeDiagnostic]:
    request = analyzer_pb2.AnalyzeStackRequest()
    for one in rendered:
        properties = json_format.ParseDict(inputs(one), struct_pb2.Struct())
        type_, name = resource_type(one), resource_name(one)
        urn = f"urn:pulumi:{stack}::gpuyard::{type_}::{name}"
        request.resources.add(type=type_, name=name, urn=urn, properties=properties)
    return list(pack.AnalyzeStack(request, timeout=120).diagnostics)


def test_the_pack_has_its_policies(pack: analyzer_pb2_grpc.AnalyzerStub) -> None:
    info = pack.GetAnalyzerInfo(empty_pb2.Empty(), timeout=60)

    assert info.name == "gpuyard"
    assert [policy.name for policy in info.policies][:1] == ["gpuyard-errors"]
    assert info.policies[0].enforcementLevel == analyzer_pb2.MANDATORY


def test_a_good_stack_passes(pack: analyzer_pb2_grpc.AnalyzerStub, jobs: list[Rendered]) -> None:
    assert [one.message for one in analyze(pack, jobs, "sandbox-jobs")] == []


def test_a_gang_that_can_start_by_half_is_refused(pack: analyzer_pb2_grpc.AnalyzerStub, jobs: list[Rendered]) -> None:
    gangs = [one for one in jobs if one.manifest["kind"] in ("PyTorchJob", "TFJob")]
    broken = gangs[0]
    policy = broken.manifest["spec"]["runPolicy"]["schedulingPolicy"]
    before = policy["minAvailable"]
    policy["minAvailable"] = 1
    try:
        found = analyze(pack, jobs, "sandbox-jobs")
    finally:
        policy["minAvailable"] = before

    assert [one.policyName for one in found] == ["gpuyard-errors"]
    assert found[0].enforcementLevel == analyzer_pb2.MANDATORY
    assert found[0].urn.endswith(f"::{resource_name(broken)}")
    assert found[0].message.split("gang-min-available\n")[1].splitlines()[1].startswith("  stacks/sandbox/jobs/")
