"""In how few waves a layer can be applied."""

from dataclasses import replace

from gpuyard.manifests import Lifecycle, Rendered
from gpuyard.manifests.graph import Graph
from gpuyard.manifests.waves import waves
from tests.manifests.test_graph import crd, deployment, thing, webhook


def numbers(*objects: Rendered) -> dict[str, int]:
    return {str(who): number for who, number in waves(Graph(objects)).items()}


def never_waited_for(rendered: Rendered) -> Rendered:
    return replace(rendered, lifecycle=Lifecycle(wait=False))


SERVER = (
    thing("Service", "hook", "sys", spec={"selector": {"app": "hook"}}),
    deployment("hook", "sys", {"app": "hook"}, serviceAccountName="s"),
    webhook("switches", "hook", "sys"),
)


def test_what_pods_wait_for_shares_their_wave():
    assert numbers(
        thing("Namespace", "t"),
        thing("ServiceAccount", "s", "t"),
        thing("ConfigMap", "c", "t"),
        deployment("a", "t", serviceAccountName="s", volumes=[{"name": "v", "configMap": {"name": "c"}}]),
    ) == {"Namespace t": 0, "ServiceAccount t/s": 0, "ConfigMap t/c": 0, "Deployment t/a": 0}


def test_what_a_webhook_checks_comes_after_it_and_a_parent_before_its_child():
    found = numbers(
        *SERVER,
        crd("Switch", "switches"),
        thing("Switch", "s", "", "acme.com/v1"),
        crd("Queue", "queues"),
        thing("Queue", "parent", "", "acme.com/v1"),
        thing("Queue", "child", "", "acme.com/v1", spec={"parent": "parent"}),
    )
    assert found == {
        # Layers are counted on their own: definitions are all there before the platform.
        "CustomResourceDefinition queues.acme.com": 0,
        "CustomResourceDefinition switches.acme.com": 0,
        "Service sys/hook": 0,
        "Deployment sys/hook": 0,
        "ValidatingWebhookConfiguration guard": 0,
        "Switch s": 1,
        "Queue parent": 0,
        "Queue child": 1,
    }


def test_what_takes_its_time_holds_nothing_up():
    claim = never_waited_for(thing("PersistentVolumeClaim", "c", "t"))
    used = never_waited_for(thing("PersistentVolumeClaim", "used", "t"))
    mount = [{"name": "v", "persistentVolumeClaim": {"claimName": "used"}}]
    found = numbers(
        *SERVER,
        crd("Switch", "switches"),
        crd("Lamp", "lamps"),
        thing("Switch", "s", "", "acme.com/v1"),
        thing("Lamp", "l", "", "acme.com/v1"),
        claim,
        used,
        deployment("user", "t", volumes=mount),
    )
    # A lamp needs no webhook, yet nothing has to wait until it shines.
    assert (found["Switch s"], found["Lamp l"], found["PersistentVolumeClaim t/c"]) == (1, 1, 1)
    # The pod that binds this volume is in the first wave.
    assert (found["Deployment t/user"], found["PersistentVolumeClaim t/used"]) == (0, 0)
