"""The pod template that all kinds of jobs share, seen through PyTorch jobs unless the kind matters."""

from __future__ import annotations

from typing import Any

import pytest

from components.jobs.pytorch import pytorch_run
from components.jobs.tensorflow import tensorflow_run
from gpuyard.errors import InputError
from gpuyard.model.environment import Environment
from tests.components.clusters import cluster

INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def described(**job: Any) -> dict[str, Any]:
    base = {"name": "resnet", "team": "vision", "kind": "pytorch", "image": "registry.acme.com/resnet:1", "gpus": 8}
    return base | job


def pods(environment: Environment) -> dict[str, dict[str, Any]]:
    """Return the pod template of each role of the only job."""
    (job,) = environment.jobs.values()
    render: Any = pytorch_run if job.kind == "pytorch" else tensorflow_run
    *_, run = render(environment, job)
    (replicas,) = (value for key, value in run.manifest["spec"].items() if key.endswith("ReplicaSpecs"))
    return {role: replica["template"] for role, replica in replicas.items()}


def pod(job: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return the spec of the first pod."""
    template, *_ = pods(cluster(job=described(**(job or {})), **changes)).values()
    return template["spec"]


def container(job: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    (found,) = pod(job, **changes)["containers"]
    return found


def env(job: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container(job, **changes)["env"]}


def refused(job: dict[str, Any], **changes: Any) -> str:
    environment = cluster(job=described(**job), **changes)
    with pytest.raises(InputError) as caught:
        pods(environment)
    return str(caught.value)


# What a pod is


def test_labels_and_annotations() -> None:
    (template,) = pods(cluster(job=described())).values()
    assert template["metadata"] == {
        "labels": {
            "app.kubernetes.io/managed-by": "gpuyard",
            "gpuyard.dev/team": "vision",
            "gpuyard.dev/job": "resnet",
        },
        "annotations": {
            "karpenter.sh/do-not-disrupt": "true",
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        },
    }


def test_command_and_arguments_are_the_jobs() -> None:
    found = container({"command": ["torchrun", "train.py"], "args": ["--epochs", "90"]})
    assert (found["image"], found["command"], found["args"]) == (
        "registry.acme.com/resnet:1",
        ["torchrun", "train.py"],
        ["--epochs", "90"],
    )
    assert not {"command", "args"} & container().keys()


def test_a_pod_has_no_token_and_no_service_variables() -> None:
    spec = pod()
    assert spec["serviceAccountName"] == "training"
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False


def test_a_pod_is_as_restricted_as_its_image_allows() -> None:
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod()["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert pod({"user": 1000})["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsUser": 1000,
        "runAsNonRoot": True,
        "fsGroup": 1000,
        "fsGroupChangePolicy": "OnRootMismatch",
    }


def test_pull_secrets_are_the_teams() -> None:
    assert pod(team={"pull_secrets": ["registry-acme"]})["imagePullSecrets"] == [{"name": "registry-acme"}]
    assert "imagePullSecrets" not in pod()


def test_volcano_places_the_pod_unless_the_cluster_has_no_gang_scheduler() -> None:
    assert pod()["schedulerName"] == "volcano"
    assert "schedulerName" not in pod(scheduling={"gang": "none"})


def test_priority() -> None:
    assert pod({"priority": "research"})["priorityClassName"] == "research"
    assert "priorityClassName" not in pod()


@pytest.mark.parametrize(
    ("pools", "provider", "seconds"),
    [(["a10g"], "eks", 600), (["l4"], "eks", 120), (["a10g", "l4"], "eks", 120), (["l4"], "gke", 30)],
)
def test_time_to_save_a_checkpoint_is_no_longer_than_the_notice_of_a_spot_node(
    pools: list[str], provider: str, seconds: int
) -> None:
    job = {"gpus": 4, "pools": pools, "checkpoint": {"size": "100Gi"}}
    assert pod(job, cluster={"provider": provider})["terminationGracePeriodSeconds"] == seconds
    assert "terminationGracePeriodSeconds" not in pod(job | {"checkpoint": None})


# What it asks for


def test_a_pod_gets_nine_tenths_of_its_share_of_the_smallest_node() -> None:
    # Half a p4d.24xlarge: 45 of 90 CPUs and 529.5 of 1059 GiB; half a p5.48xlarge would be twice as much.
    assert container({"gpus": 4, "pools": ["h100", "a100"]})["resources"] == {
        "requests": {"cpu": "40", "memory": "476Gi", "nvidia.com/gpu": "4"},
        "limits": {"memory": "476Gi", "nvidia.com/gpu": "4"},
    }


def test_what_the_job_says_goes_first() -> None:
    resources = container({"cpu": "12500m", "memory": "100Gi", "pools": ["a10g"]})["resources"]
    assert resources["requests"] == {"cpu": "12500m", "memory": "100Gi", "nvidia.com/gpu": "8"}
    assert resources["limits"] == {"memory": "100Gi", "nvidia.com/gpu": "8"}


def test_a_share_below_one_core_is_given_in_parts() -> None:
    tiny = {"name": "tiny", "cpu": 3, "memory": "5Gi", "gpus": 4, "gpu": "T4", "product": "Tesla-T4"}
    pools = {"pools": {"tiny": {"machine": tiny, "nodes": 1}}}
    requests = container({"gpus": 1}, team={"quota": {"tiny": 4}}, **pools)["resources"]["requests"]
    # 2 of 3 CPUs and 3 of 5 GiB are left for pods.
    assert (requests["cpu"], requests["memory"]) == ("400m", "691Mi")


def test_a_pod_without_gpus_has_a_size_of_its_own() -> None:
    job = {"gpus": 0}
    assert container(job)["resources"] == {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"memory": "16Gi"}}


@pytest.mark.parametrize(
    ("job", "size"),
    [
        ({"pools": ["h100"]}, "64Gi"),
        ({"pools": ["h100"], "gpus": 1}, "8Gi"),
        ({"pools": ["h100"], "memory": "100Gi"}, "25Gi"),
        ({"pools": ["h100"], "memory": "1500M"}, "357Mi"),
        ({"gpus": 0}, "4Gi"),
    ],
)
def test_shared_memory_is_eight_gib_for_each_gpu_and_at_most_a_quarter(job: dict[str, Any], size: str) -> None:
    assert pod(job)["volumes"][0] == {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}}
    assert container(job)["volumeMounts"][0] == {"name": "shm", "mountPath": "/dev/shm"}


# Fabric


def test_pods_that_talk_over_a_fabric_take_all_interfaces_of_the_node() -> None:
    found = container({"nodes": 2, "pools": ["h100"]})
    fabric = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32", "hugepages-2Mi": "5Gi"}
    assert found["resources"]["limits"] == {"memory": "1695Gi"} | fabric
    assert found["resources"]["requests"] == {"cpu": "162", "memory": "1695Gi"} | fabric
    assert found["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
    assert env({"nodes": 2, "pools": ["h100"]})["FI_PROVIDER"] == "efa"


def test_one_pod_needs_no_fabric() -> None:
    found = container({"pools": ["h100"]})
    assert found["resources"]["limits"].keys() == {"memory", "nvidia.com/gpu"}
    assert "add" not in found["securityContext"]["capabilities"]
    assert "FI_PROVIDER" not in env({"pools": ["h100"]})


def test_pods_of_a_pool_without_fabric_have_none() -> None:
    assert "FI_PROVIDER" not in env({"nodes": 2, "pools": ["a10g"]})


def test_pools_with_different_interfaces() -> None:
    assert refused({"nodes": 4, "pools": ["h100", "a100"]}) == (
        "error  pools with different interfaces\n"
        "  jobs/resnet.yaml:7   pools\n"
        "  h100 has 32 efa, a100 has 4 efa per node; 4 pods of one job cannot talk over both\n"
        "  fix: name pools with the same interfaces, or nodes: 1"
    )
    assert "h100 has 32 efa, a10g has none per node" in refused({"nodes": 4, "pools": ["h100", "a10g"]})


def test_a_job_that_names_no_pool_gets_pools_of_one_kind_of_interface() -> None:
    assert pool_names(pod({"nodes": 4})) == ["p5.48xlarge"]


def test_part_of_a_node_with_a_fabric() -> None:
    assert refused({"nodes": 2, "gpus": 4, "pools": ["h100"]}) == (
        "error  part of a node with a fabric\n"
        "  jobs/resnet.yaml:5   gpus\n"
        "  2 pods of 4 GPUs on pool h100, whose nodes have 8 GPUs and 32 efa interfaces; "
        "a pod takes all interfaces of a node or none\n"
        "  fix: gpus: 8, or nodes: 1, or name pools without a fabric"
    )
    job = {"kind": "tensorflow", "replicas": {"worker": 2}, "gpus": 4, "pools": ["h100"]}
    assert refused(job).endswith("fix: gpus: 8, or replicas: {worker: 1}, or name pools without a fabric")


# Nodes


def pool_names(spec: dict[str, Any]) -> list[str]:
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [expression["values"][0] for term in terms for expression in term["matchExpressions"]]


def test_a_pod_may_run_on_its_pools_and_prefers_the_first() -> None:
    node = pod({"pools": ["h100", "a100"]})["affinity"]["nodeAffinity"]
    h100, a100 = (
        {"matchExpressions": [{"key": INSTANCE_TYPE, "operator": "In", "values": [machine]}]}
        for machine in ("p5.48xlarge", "p4d.24xlarge")
    )
    assert node == {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [h100, a100]},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": h100},
            {"weight": 90, "preference": a100},
        ],
    }


def test_one_pool_is_no_preference() -> None:
    assert pod({"pools": ["h100"]})["affinity"]["nodeAffinity"].keys() == {
        "requiredDuringSchedulingIgnoredDuringExecution"
    }


@pytest.mark.parametrize(
    ("priority", "machines"),
    [
        ("research", ["p5.48xlarge", "g6.12xlarge", "g5.48xlarge", "p4d.24xlarge"]),
        ("batch", ["p4d.24xlarge", "g5.48xlarge", "g6.12xlarge", "p5.48xlarge"]),
    ],
)
def test_a_job_that_names_no_pool_goes_where_its_priority_says(priority: str, machines: list[str]) -> None:
    assert pool_names(pod({"gpus": 4, "priority": priority})) == machines


def test_pools_without_gpus_are_for_pods_without_gpus() -> None:
    assert pool_names(pod({"gpus": 0})) == ["m7i.8xlarge"]
    assert pool_names(pod({"gpus": 0, "pools": ["cpu"]})) == ["m7i.8xlarge"]
    assert "tolerations" not in pod({"gpus": 0})


def test_a_pod_tolerates_the_taints_of_its_pools_and_no_others() -> None:
    research = {"key": "acme.com/group", "value": "research"}
    pools = {
        "one": {"machine": "g5.48xlarge", "nodes": 1, "taints": [research, {"key": "acme.com/night"}]},
        "two": {"machine": "g6.12xlarge", "nodes": 1, "taints": [research]},
        "three": {"machine": "p4d.24xlarge", "nodes": 1, "taints": [{"key": "acme.com/other"}]},
    }
    assert pod({"gpus": 4, "pools": ["one", "two"]}, pools=pools)["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "acme.com/group", "operator": "Equal", "value": "research", "effect": "NoSchedule"},
        {"key": "acme.com/night", "operator": "Exists", "effect": "NoSchedule"},
    ]


def test_a_gang_stays_on_the_kind_of_node_where_it_began() -> None:
    environment = cluster(
        job=described(kind="tensorflow", replicas={"chief": 1, "worker": 3, "ps": 1}, gpus=4, pools=["a10g", "l4"])
    )
    (job,) = environment.jobs.values()
    templates = pods(environment)
    expected = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {
                    "matchLabels": {"training.kubeflow.org/job-name": job.object_name},
                    "matchExpressions": [
                        {
                            "key": "training.kubeflow.org/replica-type",
                            "operator": "In",
                            "values": ["chief", "worker"],
                        }
                    ],
                },
                "topologyKey": INSTANCE_TYPE,
            }
        ]
    }
    assert templates["Chief"]["spec"]["affinity"]["podAffinity"] == expected
    assert templates["Worker"]["spec"]["affinity"]["podAffinity"] == expected
    assert "podAffinity" not in templates["PS"]["spec"]["affinity"]


def test_nothing_keeps_a_gang_together_on_one_machine_or_a_single_pod_anywhere() -> None:
    pools = {name: {"machine": "g5.48xlarge", "nodes": 4, "labels": {"acme.com/row": name}} for name in ("one", "two")}
    assert "podAffinity" not in pod({"nodes": 2, "pools": ["one", "two"]}, pools=pools)["affinity"]
    assert "podAffinity" not in pod({"gpus": 4, "pools": ["a10g", "l4"]})["affinity"]


def bare(name: str, **pool: Any) -> dict[str, Any]:
    machine = {"name": name, "cpu": 64, "memory": "512Gi", "gpus": 8, "gpu": "A100", "product": "NVIDIA-A100"}
    return {"machine": machine, "nodes": 4, **pool}


def test_on_premises_a_label_of_the_pools_tells_the_kinds_apart() -> None:
    pools = {name: bare(name, labels={"acme.com/row": name}) for name in ("old", "new")}
    affinity = pod({"nodes": 2, "pools": ["old", "new"]}, pools=pools)["affinity"]["podAffinity"]
    assert affinity["requiredDuringSchedulingIgnoredDuringExecution"][0]["topologyKey"] == "acme.com/row"


def test_kinds_that_no_label_tells_apart() -> None:
    pools = {"old": bare("old", labels={"acme.com/old": "yes"}), "new": bare("new", labels={"acme.com/new": "yes"})}
    assert refused({"nodes": 2, "pools": ["old", "new"]}, pools=pools) == (
        "error  pools that no label tells apart\n"
        "  jobs/resnet.yaml:7   pools\n"
        "  nodes of old and new are of 2 kinds, and a job of 2 pods runs on one\n"
        "  fix: name one pool, or give the pools a label with different values"
    )


def test_no_pool_has_enough_gpus() -> None:
    assert refused({"gpus": 16}, team={"quota": {"h100": 64, "l4": 8, "a100": 0}}) == (
        "error  no pool for this job\n"
        "  jobs/resnet.yaml:5   gpus\n"
        "  a pod takes 16 GPUs; nodes that team vision has a quota for: h100 8, l4 4\n"
        "  fix: name a pool with GPUs, or give the team a quota in one"
    )


def test_more_gpus_than_a_node_of_a_named_pool_is_left_to_the_rules() -> None:
    assert container({"gpus": 16, "pools": ["h100"]})["resources"]["limits"]["nvidia.com/gpu"] == "16"


def test_a_pool_of_the_wrong_kind() -> None:
    assert refused({"pools": ["h100", "cpu"]}) == (
        "error  pool of the wrong kind\n"
        "  jobs/resnet.yaml:6   pools.1\n"
        "  cpu: its nodes have no GPUs, and every pod of this job takes 8\n"
        "  fix: take cpu out"
    )
    message = refused({"gpus": 0, "pools": ["h100"]})
    assert "h100: its nodes are kept for pods with GPUs, and this job has none" in message


def test_parameter_servers_need_nodes_without_gpus() -> None:
    environment = cluster(job=described(kind="tensorflow", replicas={"worker": 1, "ps": 1}, pools=["h100"]))
    del environment.pools["cpu"]
    with pytest.raises(InputError) as caught:
        pods(environment)
    assert str(caught.value) == (
        "error  no pool without GPUs\n"
        "  jobs/resnet.yaml:9   pools\n"
        "  ps pods hold no GPU and stay off GPU nodes; test has no other\n"
        "  fix: add a pool of a machine without GPUs"
    )


# Environment variables


def test_variables_are_values_or_keys_of_secrets() -> None:
    found = env({"env": {"WANDB_PROJECT": "resnet", "WANDB_API_KEY": {"secret": "wandb", "key": "api-key"}}})
    assert found["WANDB_PROJECT"] == "resnet"
    assert found["WANDB_API_KEY"] == {"secretKeyRef": {"name": "wandb", "key": "api-key"}}


def test_the_job_wins_over_our_defaults_and_each_name_comes_once() -> None:
    job = {"nodes": 2, "pools": ["h100"], "env": {"NCCL_DEBUG": "INFO", "FI_PROVIDER": "tcp"}}
    names = [one["name"] for one in container(job)["env"]]
    assert len(names) == len(set(names))
    assert env(job)["NCCL_DEBUG"] == "INFO"
    assert env(job)["FI_PROVIDER"] == "tcp"


def test_a_pod_without_gpus_has_no_nccl() -> None:
    assert "env" not in container({"gpus": 0})


@pytest.mark.parametrize("name", ["MASTER_ADDR", "RANK", "WORLD_SIZE", "PET_NNODES"])
def test_variables_of_the_operator_are_refused(name: str) -> None:
    assert refused({"env": {name: "1"}}) == (
        "error  variable of the operator\n"
        f"  jobs/resnet.yaml:7   env.{name}\n"
        f"  the training operator sets {name} itself, after the job's own variables\n"
        f"  fix: take {name} out"
    )


# Volumes


def test_datasets_are_read_only_and_at_one_path_everywhere() -> None:
    changes: dict[str, Any] = {
        "storage": {
            "datasets": {
                "imagenet": {"class": "shared", "size": "1Ti"},
                "text": {"class": "shared", "size": "1Ti", "mount": "/corpus/text"},
            }
        }
    }
    job = {"data": ["imagenet", "text"], "nodes": 2, "pools": ["a10g"]}
    assert container(job, **changes)["volumeMounts"][1:] == [
        {"name": "dataset-imagenet", "mountPath": "/data/imagenet", "readOnly": True},
        {"name": "dataset-text", "mountPath": "/corpus/text", "readOnly": True},
    ]
    assert pod(job, **changes)["volumes"][1] == {
        "name": "dataset-imagenet",
        "persistentVolumeClaim": {"claimName": "dataset-imagenet", "readOnly": True},
    }


def test_checkpoints_are_a_volume_that_all_runs_share() -> None:
    environment = cluster(job=described(checkpoint={"size": "500Gi"}, pools=["a10g"], nodes=2))
    (job,) = environment.jobs.values()
    claim, run = pytorch_run(environment, job)  # pyright: ignore[reportArgumentType]  # the only job is a PyTorchJob
    assert claim.id == "PersistentVolumeClaim/vision/resnet-checkpoint"
    assert claim.manifest["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "shared",
        "resources": {"requests": {"storage": "500Gi"}},
    }
    assert (claim.layer, run.layer) == ("jobs", "jobs")
    assert claim.lifecycle.protect
    assert claim.lifecycle.retain
    assert not claim.lifecycle.wait
    assert claim.origin == environment.origin("jobs", "resnet", "checkpoint")
    for template in pods(environment).values():
        assert template["spec"]["volumes"][1]["persistentVolumeClaim"] == {"claimName": "resnet-checkpoint"}
        (found,) = template["spec"]["containers"]
        assert found["volumeMounts"][1] == {"name": "checkpoints", "mountPath": "/checkpoints"}
        assert {"name": "CHECKPOINT_DIR", "value": "/checkpoints"} in found["env"]


def test_one_pod_may_keep_checkpoints_on_a_disk() -> None:
    environment = cluster(job=described(checkpoint={"size": "500Gi", "class": "block"}, pools=["a10g"]))
    (job,) = environment.jobs.values()
    claim, _ = pytorch_run(environment, job)  # pyright: ignore[reportArgumentType]  # the only job is a PyTorchJob
    assert claim.manifest["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_pods_on_several_nodes_cannot_mount_a_disk() -> None:
    assert refused({"nodes": 2, "pools": ["a10g"], "checkpoint": {"size": "1Gi", "class": "block"}}) == (
        "error  volume of one node\n"
        "  jobs/resnet.yaml:8   checkpoint\n"
        "  2 pods mount checkpoints; class block (ebs-gp3) can be mounted on one node at a time\n"
        "  fix: use a shared class: shared"
    )
    datasets = {"datasets": {"small": {"class": "block", "size": "1Gi"}}}
    assert refused({"nodes": 2, "pools": ["a10g"], "data": ["small"]}, storage=datasets) == (
        "error  volume of one node\n"
        "  jobs/resnet.yaml:8   data.0\n"
        "  2 pods mount small; class block (ebs-gp3) can be mounted on one node at a time\n"
        "  fix: use a shared class: shared"
    )


def test_pods_of_a_pool_with_a_single_node_can() -> None:
    pools = {"single": {"machine": "g6.12xlarge", "nodes": 1}}
    job = {"nodes": 2, "gpus": 2, "pools": ["single"], "checkpoint": {"size": "1Gi", "class": "block"}}
    assert pod(job, pools=pools)["volumes"][1]["name"] == "checkpoints"


def test_checkpoints_need_a_class() -> None:
    assert refused({"checkpoint": {"size": "1Gi"}}, storage={"checkpoints": None}) == (
        "error  no storage class for checkpoints\n"
        "  jobs/resnet.yaml:6   checkpoint\n"
        "  neither the job nor storage.checkpoints of test names one\n"
        "  fix: add class: under checkpoint, or checkpoints: under storage"
    )


def test_two_volumes_at_one_path() -> None:
    datasets = {"datasets": {"old": {"class": "shared", "size": "1Gi", "mount": "/checkpoints"}}}
    assert refused({"data": ["old"], "checkpoint": {"size": "1Gi"}}, storage=datasets) == (
        "error  two volumes at one path\n"
        "  jobs/resnet.yaml:6   data\n"
        "  dataset-old and checkpoints are both mounted at /checkpoints\n"
        "  fix: give the dataset another path with mount: under storage.datasets"
    )


# Names


def test_a_name_leaves_room_for_run_role_and_number() -> None:
    assert pod({"name": "r" * 46, "pools": ["a10g"]})
    assert refused({"name": "r" * 47, "pools": ["a10g"]}) == (
        "error  name too long\n"
        f"  jobs/{'r' * 47}.yaml:1   name\n"
        "  47 characters; its pods add 7 for the run and 10 for role and number, and their names end at 63\n"
        "  fix: use at most 46 characters"
    )


def test_many_workers_need_more_room() -> None:
    job = {"kind": "tensorflow", "replicas": {"worker": 101}, "gpus": 1, "pools": ["l4"], "name": "r" * 46}
    assert "its pods add 7 for the run and 11 for role and number" in refused(job)
