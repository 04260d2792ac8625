"""What a person reads when a stack file is wrong: every message in full, with its file and line."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gpuyard.errors import InputError
from gpuyard.model.environment import Environment
from gpuyard.model.load import environments
from infra import assemble

ENVIRONMENT = """\
cluster: {name: acme, provider: eks, kubernetes: "1.34"}
pools:
  h100: {machine: p5.48xlarge, nodes: 2, fabric: efa}
  cpu: {machine: m7i.8xlarge, nodes: 1}
scheduling:
  priorities: {research: {value: 500}}
addons:
  training-operator: {}
storage:
  classes:
    scratch: {type: efs, file-system: fs-1}
  datasets:
    imagenet: {class: scratch, size: 100Gi}
  checkpoints: scratch
"""
TEAM = """\
name: vision
quota: {h100: 16}
datasets: [imagenet]
secrets: [wandb]
"""
JOB = """\
name: resnet
team: vision
kind: pytorch
image: registry.acme.com/resnet:1
nodes: 2
gpus: 8
"""


class Stacks:
    """A folder of environments with one environment, `test`, that is fine until a test changes a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("test/environment.yaml", ENVIRONMENT)
        self.write("test/teams/vision.yaml", TEAM)
        self.write("test/jobs/resnet.yaml", JOB)

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))

    def add(self, path: str, text: str) -> None:
        file = self.folder / path
        file.write_text(file.read_text() + dedent(text))

    def replace(self, path: str, old: str, new: str) -> None:
        file = self.folder / path
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    def load(self) -> Environment:
        return assemble.load("test", self.folder)

    def error(self) -> str:
        with pytest.raises(InputError) as caught:
            self.load()
        return str(caught.value).replace(str(self.folder), "stacks")


@pytest.fixture
def stacks(tmp_path: Path) -> Stacks:
    return Stacks(tmp_path / "stacks")


def test_the_files_become_one_environment(stacks: Stacks) -> None:
    environment = stacks.load()
    assert environment.pools["h100"].gpus == 16
    assert environment.teams["vision"].quota == {"h100": 16}
    assert environment.jobs["resnet"].pods == {"master": 1, "worker": 1}
    assert str(environment.origin("jobs", "resnet", "gpus")).endswith("test/jobs/resnet.yaml:6")


def test_naming_the_gang_scheduler_brings_its_addon(stacks: Stacks) -> None:
    assert "volcano" in stacks.load().addons
    stacks.replace("test/environment.yaml", "scheduling:\n", "scheduling:\n  gang: none\n")
    assert "volcano" not in stacks.load().addons


def test_unknown_key_names_the_nearest_one(stacks: Stacks) -> None:
    stacks.add("test/jobs/resnet.yaml", "checkpiont: {size: 1Gi}\n")
    assert stacks.error() == dedent("""\
        error  unknown field
          stacks/test/jobs/resnet.yaml:7   checkpiont
          did you mean checkpoint?""")


def test_unknown_key_far_from_all_lists_what_is_accepted(stacks: Stacks) -> None:
    stacks.replace("test/environment.yaml", "fabric: efa", "zzz: efa")
    assert stacks.error() == dedent("""\
        error  unknown field
          stacks/test/environment.yaml:3   pools.h100.zzz
          accepted: capacity, fabric, labels, machine, nodes, taints""")


def test_wrong_type(stacks: Stacks) -> None:
    stacks.replace("test/jobs/resnet.yaml", "gpus: 8", 'gpus: "8"')
    assert stacks.error() == dedent("""\
        error  wrong type
          stacks/test/jobs/resnet.yaml:6   gpus
          8 is text; a whole number is needed""")


def test_a_number_where_text_is_needed_says_to_quote_it(stacks: Stacks) -> None:
    stacks.replace("test/environment.yaml", '"1.34"', "1.34")
    assert stacks.error() == dedent("""\
        error  wrong type
          stacks/test/environment.yaml:1   cluster.kubernetes
          1.34 is a number; text is needed
          fix: write "1.34" in quotes""")


@pytest.mark.parametrize("version", ["1.25", "1.29", "1.38", "1.34.2", "v1.34", "latest"])
def test_a_kubernetes_version_that_is_not_supported(stacks: Stacks, version: str) -> None:
    stacks.replace("test/environment.yaml", '"1.34"', f'"{version}"')
    assert stacks.error() == dedent(f"""\
        error  bad value
          stacks/test/environment.yaml:1   cluster.kubernetes
          {version}: accepted are the minor versions 1.30 to 1.37""")


@pytest.mark.parametrize("version", ["1.30", "1.37"])
def test_the_first_and_the_last_kubernetes_version(stacks: Stacks, version: str) -> None:
    stacks.replace("test/environment.yaml", '"1.34"', f'"{version}"')
    assert stacks.load().cluster.kubernetes == version


def test_unknown_enum_value(stacks: Stacks) -> None:
    stacks.replace("test/environment.yaml", "provider: eks", "provider: ekz")
    assert stacks.error() == dedent("""\
        error  unknown value
          stacks/test/environment.yaml:1   cluster.provider
          ekz; accepted: eks, gke, aks, oci, on-prem, kubeadm, kind
          fix: did you mean eks?""")


def test_unknown_machine(stacks: Stacks) -> None:
    stacks.replace("test/environment.yaml", "p5.48xlarge", "p5.48xlarg")
    assert stacks.error() == dedent("""\
        error  bad value
          stacks/test/environment.yaml:3   pools.h100.machine
          p5.48xlarg: no machine of the catalogue is called p5.48xlarg; did you mean p5.48xlarge?""")


def test_fabric_that_the_machine_does_not_have(stacks: Stacks) -> None:
    stacks.replace("test/environment.yaml", "fabric: efa", "fabric: infiniband")
    assert "machine p5.48xlarge has no infiniband interfaces; its fabrics: efa" in stacks.error()


def test_duplicate_key(stacks: Stacks) -> None:
    stacks.add("test/jobs/resnet.yaml", "gpus: 4\n")
    assert stacks.error() == dedent("""\
        error  duplicate key
          stacks/test/jobs/resnet.yaml:7   gpus
          `gpus` is written twice: lines 6 and 7
          fix: keep one of them""")


def test_bad_quantity(stacks: Stacks) -> None:
    stacks.add("test/jobs/resnet.yaml", "memory: 64GB\n")
    assert stacks.error() == dedent("""\
        error  bad value
          stacks/test/jobs/resnet.yaml:7   memory
          64GB: a quantity is a number with an optional unit: 500m, 4, 2.5, 100M, 64Gi, 2Ti""")


@pytest.mark.parametrize("name", ["ResNet", "9net", "net_1", "net-"])
def test_bad_name(stacks: Stacks, name: str) -> None:
    stacks.replace("test/jobs/resnet.yaml", "name: resnet", f"name: {name}")
    assert stacks.error() == (
        f"error  bad value\n  stacks/test/jobs/resnet.yaml:1   name\n  {name}: a DNS-1035 label is made of lower-case "
        "letters, digits and '-', starts with a letter and ends with a letter or digit"
    )


def test_missing_field(stacks: Stacks) -> None:
    stacks.replace("test/jobs/resnet.yaml", "image: registry.acme.com/resnet:1\n", "")
    assert stacks.error() == dedent("""\
        error  missing field
          stacks/test/jobs/resnet.yaml:1   image
          job resnet needs image
          fix: add image:""")


def test_extends_cycle(stacks: Stacks) -> None:
    stacks.write("a.yaml", "extends: b.yaml\n")
    stacks.write("b.yaml", "# the other one\nextends: a.yaml\n")
    stacks.add("test/environment.yaml", "extends: ../a.yaml\n")
    assert stacks.error() == dedent("""\
        error  files extend each other
          stacks/b.yaml:2   extends
          stacks/test/environment.yaml -> stacks/a.yaml -> stacks/b.yaml -> stacks/a.yaml
          fix: take one extends away""")


def test_extends_a_missing_file(stacks: Stacks) -> None:
    stacks.add("test/environment.yaml", "extends: ../bass.yaml\n")
    assert stacks.error() == dedent("""\
        error  missing file
          stacks/test/environment.yaml:15   extends
          stacks/bass.yaml does not exist""")


def test_extends_a_file_outside(stacks: Stacks) -> None:
    stacks.add("test/environment.yaml", "extends: ../../../etc/passwd\n")
    assert stacks.error().startswith("error  file outside the stacks folder\n  stacks/test/environment.yaml:15\n")


@pytest.mark.parametrize(
    ("what", "written", "field", "says"),
    [
        ("pool", "pools: [h200]", "7   pools[0]", "h200; pools has cpu, h100\n  fix: did you mean h100?"),
        ("queue", "queue: fast", "7   queue", "fast; team vision (stacks/test/teams/vision.yaml) has vision"),
        (
            "dataset",
            "data: [imagenot]",
            "7   data[0]",
            "imagenot; storage.datasets has imagenet\n  fix: did you mean imagenet?",
        ),
        ("priority", "priority: urgent", "7   priority", "urgent; scheduling.priorities has research"),
        (
            "secret",
            "env:\n  KEY: {secret: wanda, key: k}",
            "8   env.KEY.secret",
            "wanda; team vision (stacks/test/teams/vision.yaml) has wandb\n"
            "  fix: create it in namespace vision and add its name to the team's secrets",
        ),
    ],
)
def test_a_name_that_names_nothing(stacks: Stacks, what: str, written: str, field: str, says: str) -> None:
    stacks.add("test/jobs/resnet.yaml", written + "\n")
    assert stacks.error() == f"error  no such {what}\n  stacks/test/jobs/resnet.yaml:{field}\n  {says}"


def test_a_missing_team(stacks: Stacks) -> None:
    stacks.replace("test/jobs/resnet.yaml", "team: vision", "team: visoin")
    assert stacks.error() == dedent("""\
        error  no such team
          stacks/test/jobs/resnet.yaml:2   team
          visoin; the folder teams/ has vision
          fix: did you mean vision?""")


def test_dataset_of_another_team(stacks: Stacks) -> None:
    stacks.replace("test/teams/vision.yaml", "datasets: [imagenet]\n", "")
    stacks.add("test/jobs/resnet.yaml", "data: [imagenet]\n")
    assert stacks.error() == dedent("""\
        error  no such dataset
          stacks/test/jobs/resnet.yaml:7   data[0]
          imagenet; team vision (stacks/test/teams/vision.yaml) has none
          fix: add imagenet to the team's datasets""")


def test_unknown_job_kind(stacks: Stacks) -> None:
    stacks.replace("test/jobs/resnet.yaml", "kind: pytorch", "kind: pytorhc")
    assert stacks.error() == dedent("""\
        error  unknown value
          stacks/test/jobs/resnet.yaml:3   kind
          pytorhc; did you mean pytorch?""")


def test_unknown_addon(stacks: Stacks) -> None:
    stacks.replace("test/environment.yaml", "training-operator: {}", "training-opeator: {}")
    assert stacks.error() == dedent("""\
        error  unknown add-on
          stacks/test/environment.yaml:8   addons.training-opeator
          did you mean training-operator?""")


def test_two_files_with_one_name(stacks: Stacks) -> None:
    stacks.write("test/jobs/zz.yaml", JOB)
    assert stacks.error() == dedent("""\
        error  two jobs with one name
          stacks/test/jobs/zz.yaml:1   name
          resnet is also the name of stacks/test/jobs/resnet.yaml
          fix: give one of them another name""")


EMPTY = "empty file\n  FILE:1\n  a map of `key: value` lines is expected\n  fix: write it, or delete the file"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", EMPTY),
        ("# only a comment\n", EMPTY),
        (
            "- a\n- b\n",
            "not a map\n  FILE:1\n  the file is a list; a map of `key: value` lines is expected\n"
            "  fix: start with a key",
        ),
        (
            "just text\n",
            "not a map\n  FILE:1\n  the file is one value; a map of `key: value` lines is expected\n"
            "  fix: start with a key",
        ),
        (
            "name: x\n\tteam: y\n",
            "tab used for indentation\n  FILE:2\n  YAML indents with spaces only\n  fix: replace the tab by spaces",
        ),
        (
            "name: [x\n",
            "not valid YAML\n  FILE:1\n  the list that starts with `[` on line 1 is not closed\n"
            "  fix: close it with `]`",
        ),
    ],
)
def test_files_that_are_no_map(stacks: Stacks, text: str, says: str) -> None:
    stacks.write("test/jobs/resnet.yaml", text)
    assert stacks.error() == "error  " + says.replace("FILE", "stacks/test/jobs/resnet.yaml")


@pytest.mark.parametrize(
    ("value", "means", "instead"),
    [
        ("y", "true to some YAML readers and text to others", "true"),
        ("no", "false to some YAML readers and text to others", "false"),
        ("1e3", "the number 1000 to some YAML readers and text to others", "the number 1000"),
        ("0o14", "the number 12 to some YAML readers and text to others", "the number 12"),
        ("12:30:45", "the number 45045 to some YAML readers and text to others", "the number 45045"),
        ("014", "the number 12 to some YAML readers and the number 14 to others", "the number 12 or the number 14"),
    ],
)
def test_a_yaml_surprise_is_refused_where_it_stands(stacks: Stacks, value: str, means: str, instead: str) -> None:
    stacks.add("test/jobs/resnet.yaml", f"env:\n  EPOCHS: {value}\n")
    assert stacks.error() == (
        "error  ambiguous value\n  stacks/test/jobs/resnet.yaml:8   env.EPOCHS\n"
        f'  `{value}` is {means}\n  fix: write "{value}" in quotes, or {instead}'
    )


def test_quoted_it_is_text(stacks: Stacks) -> None:
    stacks.add("test/jobs/resnet.yaml", 'env:\n  EPOCHS: "1e3"\n')
    assert stacks.load().jobs["resnet"].env == {"EPOCHS": "1e3"}


def test_all_problems_are_told_at_once(stacks: Stacks) -> None:
    stacks.replace("test/jobs/resnet.yaml", "gpus: 8", "gpus: -1")
    stacks.replace("test/teams/vision.yaml", "h100: 16", "h100: many")
    assert stacks.error().count("error  ") == 2


def test_no_such_environment(stacks: Stacks) -> None:
    with pytest.raises(InputError, match=r"tset; did you mean test\?"):
        assemble.load("tset", stacks.folder)
    with pytest.raises(InputError, match="no such folder"):
        environments(stacks.folder / "nowhere")


def test_a_symlink_out_of_the_folder_is_refused(stacks: Stacks, tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text(JOB)
    (stacks.folder / "test/jobs/link.yaml").symlink_to(tmp_path / "outside.yaml")
    assert "file outside the stacks folder" in stacks.error()
