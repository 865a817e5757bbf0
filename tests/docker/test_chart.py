"""The manifests of the Helm chart, as `make chart` rendered them."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from scripts.render_chart import CHART, VALUES, digest, rendered_file
from toold.daemon.config.settings import Settings

FILES = sorted(VALUES.glob("*.values.yaml"))


def manifests(name: str) -> dict[str, Any]:
    """The manifests that were rendered with these values, by kind."""
    documents = yaml.safe_load_all((VALUES / f"{name}.rendered.yaml").read_text("utf-8"))
    return {document["kind"]: document for document in documents if document}


def pod(name: str) -> Any:
    return manifests(name)["Deployment"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("values", FILES, ids=lambda path: path.name)
def test_the_manifests_are_those_of_the_chart(values: Path) -> None:
    """After a change of the chart, `make chart` lints and renders it again; it needs `helm`."""
    first = rendered_file(values).read_text("utf-8").partition("\n")[0]
    assert first == f"# chart: {digest(values)}", "run `make chart`"


@pytest.mark.parametrize("values", FILES, ids=lambda path: path.name)
def test_values_match_the_schema(values: Path) -> None:
    """The schema that helm checks accepts the defaults with each file of values, and no misspelt name."""
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    defaults, given = (yaml.safe_load(path.read_text("utf-8")) for path in (CHART / "values.yaml", values))
    jsonschema.validate(defaults | given, schema)
    with pytest.raises(jsonschema.ValidationError, match="replica'"):
        jsonschema.validate(defaults | given | {"replica": 3}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(defaults, schema)  # without the secret's name


def test_each_variable_is_a_setting() -> None:
    """A misspelt variable would have no effect."""
    names = [entry["name"] for entry in pod("full")["containers"][0]["env"]]
    settings = [name.removeprefix("TOOLD_").lower() for name in names]
    assert {"store", "node_name", "peer_host", "cluster_secret_file", "lease_s"} <= set(settings)
    assert [name for name in settings if name not in Settings.model_fields] == []


@pytest.mark.parametrize("name", ["small", "full"])
def test_a_pod_has_more_time_than_the_drain(name: str) -> None:
    """The kubelet kills a pod after its time: the delay before SIGTERM, the grace period, and the daemon's end."""
    (container,) = pod(name)["containers"]
    delay = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    grace = next(float(entry["value"]) for entry in container["env"] if entry["name"] == "TOOLD_GRACE_PERIOD_S")
    assert pod(name)["terminationGracePeriodSeconds"] >= delay + grace + 10


def test_no_secret_is_in_a_manifest() -> None:
    """Secrets are references: no variable whose name says so has a value."""
    for name in ("small", "full"):
        for entry in pod(name)["containers"][0]["env"]:
            if re.search("TOKEN|SECRET$|STORE|KEY", entry["name"]):
                assert "value" not in entry


def test_a_rolling_upgrade_leaves_all_nodes() -> None:
    """A new node is ready before an old one stops; evictions leave one; the autoscaler sets the number of nodes."""
    small, full = manifests("small"), manifests("full")
    assert small["Deployment"]["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert small["Deployment"]["spec"]["replicas"] == 2
    assert "replicas" not in full["Deployment"]["spec"]
    assert small["PodDisruptionBudget"]["spec"]["minAvailable"] == 1
    assert set(full) - set(small) == {"HorizontalPodAutoscaler", "ConfigMap", "Ingress"}


def test_the_database_is_migrated_before_an_upgrade() -> None:
    """By a job that helm runs first, with the image and the database of the nodes."""
    job = manifests("small")["Job"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["toold", "store", "migrate"]
    assert container["image"] == pod("small")["containers"][0]["image"]
    assert container["env"][0] == pod("small")["containers"][0]["env"][0]


def test_the_autoscaler_follows_a_metric_of_the_daemon() -> None:
    """`toold_calls_running` is at /metrics; one node at a time is removed, since each drains first."""
    spec = manifests("full")["HorizontalPodAutoscaler"]["spec"]
    (metric,) = spec["metrics"]
    assert (metric["pods"]["metric"]["name"], metric["pods"]["target"]["averageValue"]) == ("toold_calls_running", "8")
    assert [policy["value"] for policy in spec["behavior"]["scaleDown"]["policies"]] == [1]


def test_the_ingress_does_not_publish_the_operator_api() -> None:
    """Only listed paths are reachable from outside."""
    (rule,) = manifests("full")["Ingress"]["spec"]["rules"]
    paths = {path["path"]: path["backend"]["service"]["port"]["name"] for path in rule["http"]["paths"]}
    assert paths["/ws"] == "websocket"
    assert paths["/mcp"] == "http"
    assert not {"/", "/operator", "/metrics", "/readyz"} & set(paths)


def test_pods_have_no_more_rights_than_they_need() -> None:
    """They run as the image's user, without capabilities, with a read-only file system and no token of the cluster."""
    for spec in (pod("small"), manifests("small")["Job"]["spec"]["template"]["spec"]):
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["automountServiceAccountToken"] is False
        for container in [*spec["containers"], *spec.get("initContainers", ())]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
