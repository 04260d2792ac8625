"""`render --for argocd|flux`: in which order, what is kept, and that runs are left alone."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuyard.cli.gitops import argocd_tree, flux_tree
from gpuyard.cli.repository import Location, locate
from gpuyard.errors import InputError
from gpuyard.manifests import RUN, Lifecycle, Rendered, declare
from tests.cli.run import gpuyard

WHERE = Location("https://git.acme.com/platform.git", "main", "rendered/prod")


def thing(
    kind: str, name: str = "a", namespace: str = "", api_version: str = "v1", life: Lifecycle | None = None, **more: Any
) -> Rendered:
    layer = more.pop("layer", None)
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}
    return declare(manifest, lifecycle=life, layer=layer).of("c")


def crd(kind: str, plural: str, group: str) -> Rendered:
    spec = {"group": group, "names": {"kind": kind, "plural": plural}}
    return thing("CustomResourceDefinition", f"{plural}.{group}", "", "apiextensions.k8s.io/v1", spec=spec)


TEMPLATE = {"metadata": {"labels": {"app": "hook"}}, "spec": {"containers": [{"name": "a"}]}}
HOOKS = {
    "clientConfig": {"service": {"name": "hook", "namespace": "sys"}},
    "rules": [{"apiGroups": ["acme.com"], "resources": ["queues"]}],
}
PLATFORM = [
    crd("Queue", "queues", "acme.com"),
    crd("Run", "runs", "acme.com"),
    thing("Namespace", "sys", life=Lifecycle(protect=True)),
    thing("Secret", "certificate", "sys", life=Lifecycle(ignore=("data",))),
    thing("Secret", "other", "sys"),
    thing("PersistentVolumeClaim", "data", "sys", life=Lifecycle(retain=True, wait=False)),
    thing("Service", "hook", "sys", spec={"selector": {"app": "hook"}}),
    thing("Deployment", "hook", "sys", "apps/v1", spec={"template": TEMPLATE}),
    thing(
        "ValidatingWebhookConfiguration",
        "guard",
        "",
        "admissionregistration.k8s.io/v1",
        Lifecycle(ignore=("webhooks[*].clientConfig.caBundle",)),
        webhooks=[HOOKS],
    ),
    thing("Queue", "root", "", "acme.com/v1"),
    thing("Queue", "team", "", "acme.com/v1", spec={"parent": "root"}),
    thing("Run", "r-1", "sys", "acme.com/v1", RUN, layer="jobs"),
]


def by_path(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(entries)) == len(entries)
    return dict(entries)


def marks(manifest: dict[str, Any]) -> dict[str, str]:
    prefixes = ("argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/")
    found: dict[str, str] = manifest["metadata"].get("annotations", {})
    return {next(key.removeprefix(one) for one in prefixes if key.startswith(one)): text for key, text in found.items()}


def test_argocd_waves() -> None:
    tree = by_path(argocd_tree("prod", "acme-prod", PLATFORM, WHERE))
    waves = {
        path: int(marks(manifest)["sync-wave"]) for path, manifest in tree.items() if "sync-wave" in marks(manifest)
    }
    assert waves == {
        "argocd/application-prod-crds": 0,
        "argocd/application-prod": 1,
        "argocd/application-prod-jobs": 2,
        # Behind the webhook, and behind its parent. All others are in wave 0.
        "platform/c/queue-root": 1,
        "platform/c/queue-team": 2,
        # Argo CD waits for each wave but the last: this volume may bind with its first pod.
        "platform/c/sys/persistentvolumeclaim-data": 2,
    }


def test_argocd_keeps_what_outlives_the_render_and_leaves_runs_alone() -> None:
    tree = by_path(argocd_tree("prod", "acme-prod", PLATFORM, WHERE))
    kept = {"sync-options": "Prune=false,Delete=false"}
    assert marks(tree["platform/c/namespace-sys"]) == kept
    assert marks(tree["crds/c/customresourcedefinition-queues.acme.com"]) == kept
    assert marks(tree["platform/c/sys/deployment-hook"]) == {}
    assert marks(tree["jobs/c/sys/run-r-1"]) == {"compare-options": "IgnoreExtraneous", **kept}


def test_argocd_applications() -> None:
    tree = by_path(argocd_tree("prod", "acme-prod", PLATFORM, WHERE))
    spec = {layer: tree[f"argocd/application-{name}"]["spec"] for layer, name in
            {"crds": "prod-crds", "platform": "prod", "jobs": "prod-jobs"}.items()}  # fmt: skip
    assert spec["platform"]["source"] == {
        "repoURL": "https://git.acme.com/platform.git",
        "targetRevision": "main",
        "path": "rendered/prod/platform",
        "directory": {"recurse": True},
    }
    assert spec["platform"]["destination"] == {"name": "acme-prod"}
    assert {layer: one["syncPolicy"]["automated"] for layer, one in spec.items()} == {
        "crds": {"prune": False, "selfHeal": True},
        "platform": {"prune": True, "selfHeal": True},
        "jobs": {"prune": False, "selfHeal": False},
    }
    assert all("ServerSideApply=true" in one["syncPolicy"]["syncOptions"] for one in spec.values())
    assert "ignoreDifferences" not in spec["crds"]
    assert spec["platform"]["ignoreDifferences"] == [
        {"kind": "Secret", "name": "certificate", "namespace": "sys", "jqPathExpressions": [".data"]},
        {
            "group": "admissionregistration.k8s.io",
            "kind": "ValidatingWebhookConfiguration",
            "jqPathExpressions": [".webhooks[]?.clientConfig.caBundle"],
        },
    ]
    assert spec["jobs"]["ignoreDifferences"] == [{"group": "acme.com", "kind": "Run", "jqPathExpressions": [".spec"]}]
    assert "RespectIgnoreDifferences=true" in spec["jobs"]["syncPolicy"]["syncOptions"]


def test_flux_applies_one_wave_after_the_other() -> None:
    tree = by_path(flux_tree("prod", PLATFORM, WHERE))
    spec = {path.removeprefix("flux/kustomization-"): manifest["spec"] for path, manifest in tree.items()
            if path.startswith("flux/kustomization-")}  # fmt: skip
    assert {name: [one["name"] for one in of.get("dependsOn", [])] for name, of in spec.items()} == {
        "prod-crds": [],
        "prod": ["prod-crds"],
        "prod-2": ["prod"],
        "prod-3": ["prod-2"],
        "prod-jobs": ["prod-3"],
    }
    assert {name: of["path"] for name, of in spec.items()} == {
        "prod-crds": "./rendered/prod/crds",
        "prod": "./rendered/prod/platform",
        "prod-2": "./rendered/prod/platform-2",
        "prod-3": "./rendered/prod/platform-3",
        "prod-jobs": "./rendered/prod/jobs",
    }
    assert {name: of["prune"] for name, of in spec.items()} == {
        "prod-crds": False, "prod": True, "prod-2": True, "prod-3": True, "prod-jobs": False
    }  # fmt: skip
    assert {"platform-2/c/queue-root", "platform-3/c/queue-team", "platform-3/c/sys/persistentvolumeclaim-data"} < set(
        tree
    )
    # What the next wave waits for; never a volume.
    assert spec["prod-crds"]["wait"] is True
    assert spec["prod"]["healthChecks"] == [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hook", "namespace": "sys"}
    ]
    assert not any(
        "wait" in of or "healthChecks" in of for name, of in spec.items() if name not in ("prod-crds", "prod")
    )


def test_flux_keeps_what_outlives_the_render_and_leaves_runs_alone() -> None:
    tree = by_path(flux_tree("prod", PLATFORM, WHERE))
    assert marks(tree["platform/c/namespace-sys"]) == {"prune": "disabled"}
    assert marks(tree["jobs/c/sys/run-r-1"]) == {"prune": "disabled", "ssa": "IfNotPresent"}
    assert marks(tree["platform/c/sys/deployment-hook"]) == {}


def test_flux_repository() -> None:
    def spec(url: str, revision: str) -> dict[str, Any]:
        return by_path(flux_tree("prod", PLATFORM, Location(url, revision, "")))["flux/gitrepository-prod"]["spec"]

    assert spec("https://git.acme.com/p.git", "main") == {
        "interval": "1m", "url": "https://git.acme.com/p.git", "ref": {"branch": "main"}
    }  # fmt: skip
    over_ssh = spec("ssh://git@git.acme.com/p.git", "refs/tags/v1")
    assert (over_ssh["ref"], over_ssh["secretRef"]) == ({"name": "refs/tags/v1"}, {"name": "prod"})


def test_annotations_are_added_to_a_copy() -> None:
    rendered = thing("Namespace", "n", life=Lifecycle(protect=True))
    rendered.manifest["metadata"]["annotations"] = {"mine": "1"}
    tree = by_path(argocd_tree("prod", "acme-prod", [rendered], WHERE))
    assert list(tree["platform/c/namespace-n"]["metadata"]["annotations"]) == [
        "mine",
        "argocd.argoproj.io/sync-options",
    ]
    assert rendered.manifest["metadata"]["annotations"] == {"mine": "1"}


# Where the tree is


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def test_git_says_where_the_tree_is(tmp_path: Path) -> None:
    git(tmp_path, "init")
    git(tmp_path, "remote", "add", "origin", "git@git.acme.com:acme/platform.git")
    expected = Location("ssh://git@git.acme.com/acme/platform.git", "main", "rendered/prod")
    assert locate(tmp_path / "rendered" / "prod", None, "main", None) == expected


def test_without_a_repository_git_cannot_say(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        locate(tmp_path / "prod", None, "main", None)
    assert str(caught.value) == (
        f"error  cannot tell where the tree will be\n  {tmp_path}/prod\n"
        "  fatal: not a git repository (or any of the parent directories): .git\n  fix: give --repo"
    )


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://me:token@git.acme.com:8443/p.git", "https://git.acme.com:8443/p.git"),
        ("https://token@git.acme.com/p.git", "https://git.acme.com/p.git"),
        ("ssh://git:secret@git.acme.com/p.git", "ssh://git@git.acme.com/p.git"),
    ],
)
def test_a_password_in_a_url_is_never_written(given: str, kept: str) -> None:
    assert locate(Path("x"), given, "main", "p").url == kept


@pytest.mark.parametrize("url", ["/srv/git/p.git", "../p", "file:///srv/p.git", "https:///p.git"])
def test_a_repository_that_only_this_machine_can_read_is_refused(url: str) -> None:
    with pytest.raises(InputError) as caught:
        locate(Path("x"), url, "main", "p")
    assert str(caught.value) == (
        f"error  a controller cannot read this repository\n  --repo\n"
        f"  {url}; accepted: https://..., http://..., ssh://..., git@HOST:PATH"
    )


@pytest.mark.parametrize("path", ["/rendered", "../rendered", "a/../../b"])
def test_a_path_outside_the_repository_is_refused(path: str) -> None:
    with pytest.raises(InputError) as caught:
        locate(Path("x"), "https://git.acme.com/p.git", "main", path)
    assert str(caught.value) == (f"error  not a path inside a repository\n  --path\n  {path}; accepted: rendered/prod")


# The command


@pytest.mark.parametrize("controller", ["argocd", "flux"])
def test_a_tree_for_a_controller_holds_every_object_once(tmp_path: Path, controller: str) -> None:
    where = ("--repo", "https://git.acme.com/p.git", "--path", "rendered/sandbox")
    out = tmp_path / "sandbox"
    result = gpuyard("render", "sandbox", "--out", str(out), "--for", controller, *where)
    assert result.returncode == 0, result.stderr
    manifests = [yaml.safe_load(path.read_text()) for path in out.rglob("*.yaml")]
    own = {"Application", "Kustomization", "GitRepository"}
    found = sorted((one["kind"], one["metadata"]["name"]) for one in manifests if one["kind"] not in own)
    rendered = gpuyard("render", "sandbox").stdout
    assert found == sorted((one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(rendered))
    assert {one["kind"] for one in manifests} & own == (
        {"Application"} if controller == "argocd" else {"Kustomization", "GitRepository"}
    )
    # Queues come after the webhook that checks them, in a later wave or a later Kustomization.
    waves = {marks(one).get("sync-wave") for one in manifests if one["kind"] == "Queue"}
    folders = {path.relative_to(out).parts[0] for path in out.rglob("queue-*.yaml")}
    assert (waves, folders) == (({"1"}, {"platform"}) if controller == "argocd" else ({None}, {"platform-2"}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--for", "flux"), "--for needs --out DIR"),
        (("--verify",), "--verify needs --out DIR"),
        (("--out", "x", "--repo", "https://a/b"), "--repo and --path go with --for"),
        (("--out", "x", "--for", "flux", "--only", "job/a"), "--for takes the whole environment, as YAML"),
        (("--out", "x", "--for", "flux", "--format", "json"), "--for takes the whole environment, as YAML"),
    ],
)
def test_options_that_make_no_sense_together(arguments: tuple[str, ...], message: str) -> None:
    result = gpuyard("render", "sandbox", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
