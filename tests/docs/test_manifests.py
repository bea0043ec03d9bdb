"""The manifest for Kubernetes: it is YAML, its parts fit together, and its commands exist."""

from __future__ import annotations

import shlex
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from .pages import ROOT
from .test_commands import wrong

PATH = ROOT / "examples/kubernetes/syno.yaml"
PARTS = {
    (each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(PATH.read_text())
}
# What is created by a command in the page, or by the user.
GIVEN = {("Secret", "syno-database"), ("PersistentVolumeClaim", "syno-data")}
VERSIONS = {"Service": "v1", "StatefulSet": "apps/v1", "Deployment": "apps/v1", "Job": "batch/v1"}


def pods() -> list[Any]:
    return [part["spec"]["template"] for part in PARTS.values() if "template" in part["spec"]]


def environment(container: Any) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def test_it_has_a_database_workers_and_a_search():
    assert sorted(PARTS) == [
        ("Deployment", "syno-workers"),
        ("Job", "syno-search"),
        ("Service", "syno-database"),
        ("StatefulSet", "syno-database"),
    ]
    assert {kind: part["apiVersion"] for (kind, _), part in PARTS.items()} == VERSIONS


def test_labels_and_selectors_agree():
    for kind in ("Deployment", "StatefulSet"):
        (part,) = (part for (other, _), part in PARTS.items() if other == kind)
        labels = part["spec"]["template"]["metadata"]["labels"]
        assert part["spec"]["selector"]["matchLabels"] == labels
    service = PARTS["Service", "syno-database"]
    database = PARTS["StatefulSet", "syno-database"]
    assert service["spec"]["selector"] == database["spec"]["selector"]["matchLabels"]
    assert database["spec"]["serviceName"] == "syno-database"
    (port,) = service["spec"]["ports"]
    assert (
        port["port"]
        == database["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"]
    )


def test_every_volume_that_is_mounted_exists():
    for part in PARTS.values():
        if "template" not in part["spec"]:
            continue
        pod = part["spec"]["template"]["spec"]
        claims = [each["metadata"]["name"] for each in part["spec"].get("volumeClaimTemplates", ())]
        for volume in pod.get("volumes", ()):
            claims.append(volume["name"])
            assert ("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]) in GIVEN
        for container in pod["containers"]:
            assert {each["name"] for each in container["volumeMounts"]} <= set(claims)


def test_the_password_is_in_no_command_and_the_store_is_the_service():
    for pod in pods():
        for container in pod["spec"]["containers"]:
            found = environment(container)
            given = found.get("PGPASSWORD") or found["POSTGRES_PASSWORD"]
            reference = given["secretKeyRef"]
            assert ("Secret", reference["name"]) in GIVEN
            if "syno" not in container["image"]:
                continue
            words = [*container["args"], *map(str, found.values())]
            (url,) = (urlsplit(word) for word in words if word.startswith("postgresql:"))
            assert (url.hostname, url.username, url.password) == ("syno-database", "syno", None)


@pytest.mark.parametrize("name", ["syno-workers", "syno-search"])
def test_its_commands_and_options_exist(name: str):
    (part,) = (part for (_, other), part in PARTS.items() if other == name)
    (container,) = part["spec"]["template"]["spec"]["containers"]
    if container["command"] == ["sh", "-c"]:
        lines = [each.strip() for each in container["args"][0].split("||")]
    else:
        lines = [shlex.join([*container["command"], *container["args"]])]
    calls = [line.removeprefix("syno ").partition(" ") for line in lines]
    assert {command for command, _, _ in calls} <= {"worker", "search", "resume"}
    assert wrong([(command, rest) for command, _, rest in calls]) == []


def test_a_worker_has_time_to_give_its_trial_back():
    pod = PARTS["Deployment", "syno-workers"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= 60
