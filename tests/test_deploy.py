"""The files of deploy/ parse, name existing things, and agree with the deployment page."""

from __future__ import annotations

import configparser
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from django.db import connection

from octweb.jobs.models import RunStatus
from octweb.jobs.queue import kinds_of_queue
from octweb.runs.models import TrainingRun
from tests.conftest import ROOT
from tools import image_size

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm"
UNITS = ("octweb-web.service", "octweb-worker@.service")
SERVICE_KEYS = {
    "image", "build", "restart", "environment", "security_opt", "cap_drop", "read_only", "tmpfs", "command", "volumes",
    "depends_on", "ports", "healthcheck", "stop_grace_period", "deploy",
}  # fmt: skip


def test_compose_file_is_complete():
    text = (DEPLOY / "compose.yaml").read_text()
    found = yaml.safe_load(text)
    services = found["services"]
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, name
        assert set(service.get("depends_on", {})) <= set(services), name
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source.startswith("/") or source in found["volumes"], name
        if "build" in service:
            assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    assert services["collector"]["volumes"] == services["web"]["volumes"]  # records wait on the web server's volume
    said = set(re.findall(r"\$\{(\w+):\?", text))
    assert said == {"POSTGRES_PASSWORD", "OCTWEB_SECRET_KEY", "BUCKET_PASSWORD"}  # no password has a default
    assert services["worker"]["environment"]["OCTWEB_FILES"] == services["web"]["environment"]["OCTWEB_FILES"]


def test_nginx_never_sends_a_prediction_twice():
    """The first call may have been answered and recorded, so a second one would double the record."""
    directives = [line.partition("#")[0].split() for line in (DEPLOY / "nginx.conf").read_text().splitlines()]
    repeated = [words for words in directives if words[:1] == ["proxy_next_upstream"]]
    assert repeated
    assert not any(word.startswith("non_idempotent") for words in repeated for word in words)


def test_every_setting_of_the_files_exists():
    known = (ROOT / "docs" / "settings.md").read_text() + (DEPLOY / "gunicorn.conf.py").read_text()
    for path in [*filter(Path.is_file, DEPLOY.iterdir()), ROOT / "docs" / "deploy.md"]:
        names = set(re.findall(r"OCTWEB_[A-Z_0-9]+", path.read_text()))
        assert sorted(name for name in names if name not in known) == [], path.name


@pytest.mark.parametrize("name", UNITS)
def test_the_units_run_as_their_own_user_without_rights(name):
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(DEPLOY / name)
    service = unit["Service"]
    assert service["User"] == "octweb"
    assert service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["StateDirectoryMode"] == "0700"
    assert service["MemoryMax"].endswith("G")
    assert service["OOMPolicy"] == "continue"  # the parent reports a killed child and goes on
    words = service["ExecStart"].split()
    if "manage.py" in words:
        command = words[words.index("manage.py") + 1]
        assert list((ROOT / "octweb").glob(f"*/management/commands/{command}.py"))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_units(tmp_path):
    for name in (*UNITS, "octweb-web.socket"):
        # the interpreter is not where the units have it on this machine, which is all that may be said of them
        text = (DEPLOY / name).read_text().replace("/srv/octweb/.venv/bin/python", sys.executable)
        (tmp_path / name.replace("@.", "@1.")).write_text(text)
    command = ["systemd-analyze", "verify", *(str(path) for path in sorted(tmp_path.iterdir()))]
    process = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (process.returncode, process.stdout + process.stderr) == (0, "")
    unknown = tmp_path / "octweb-web.service"
    unknown.write_text(unknown.read_text().replace("MemoryMax=", "MemoryMost="))
    process = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert "MemoryMost" in process.stderr  # it would say so


def test_dockerfile_copies_existing_paths_only():
    for line in (DEPLOY / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from=" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source


def test_linter_accepts_dockerfile_and_detects_a_fault(tmp_path):
    linter = Path(sys.executable).with_name("hadolint")
    process = subprocess.run([linter, DEPLOY / "Dockerfile"], capture_output=True, text=True, timeout=600)
    assert (process.returncode, process.stdout) == (0, "")
    worse = tmp_path / "Dockerfile"
    worse.write_text((DEPLOY / "Dockerfile").read_text().replace("python:3.11-slim", "python:latest"))
    process = subprocess.run([linter, worse], capture_output=True, text=True, timeout=600)
    assert (process.returncode, "DL3007" in process.stdout) == (1, True)


def test_image_runs_unprivileged_and_only_web_has_health_check():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    first = {line.split()[0]: line for line in reversed(lines) if line and line[0].isupper()}
    (uid,) = re.findall(r"--uid (\d+)", "\n".join(lines))
    assert first["USER"] == f"USER {uid}"
    assert "/readyz" in first["HEALTHCHECK"]
    assert first["VOLUME"] == "VOLUME /data"
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    own = {name: service for name, service in services.items() if service["image"] == "octweb"}
    assert {name for name, service in own.items() if "healthcheck" not in service} == {"web"}
    for service in own.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]


def test_the_size_that_is_stated_is_that_of_the_pinned_packages():
    text = (DEPLOY / "Dockerfile").read_text()
    installed = {name: version for file in image_size.lists(text) for name, version in image_size.pins(file).items()}
    if platform.machine() != "x86_64" or any(version(name) != pin for name, pin in installed.items()):
        pytest.skip("the packages of this environment are not those of the image")
    said = float(
        re.search(r"about ([\d,]+) MB above its base", (ROOT / "docs" / "deploy.md").read_text())[1].replace(",", "")
    )
    assert sum(image_size.sizes().values()) / 1e6 == pytest.approx(said, rel=0.1)


def test_gunicorn_takes_its_file(monkeypatch):
    from gunicorn.app.wsgiapp import WSGIApplication

    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR")
    monkeypatch.setattr(
        sys, "argv", ["gunicorn", "--config", str(DEPLOY / "gunicorn.conf.py"), "octweb.wsgi:application"]
    )
    found = WSGIApplication().cfg
    assert found.worker_class_str == "octweb.core.gunicorn_worker.Worker"
    assert found.threads == 16
    assert found.settings["control_socket_disable"].get() is True
    # the counters of several processes need a folder, which goes with the server
    folder = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
    assert list(folder.iterdir()) == []
    found.on_exit(None)
    assert not folder.exists()
    shutil.rmtree(folder, ignore_errors=True)


def render_chart(**changes):
    """Return the objects of the chart. Its templates use no more of Helm than this renders."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for path, value in changes.items():
        section, name = path.split("__")
        values[section][name] = value
    data = {"Values": values, "Release": {"Name": "trees", "Revision": 3}}

    def value_of(path):
        found = data
        for name in path.strip(".").split("."):
            found = found[name]
        return found

    def block(match):
        text = yaml.safe_dump(value_of(match[1]), default_flow_style=False).rstrip()
        return "\n" + "\n".join(" " * int(match[2]) + line for line in text.splitlines())

    objects = []
    for path in sorted((CHART / "templates").iterdir()):
        lines = []
        shown = True
        for line in path.read_text().splitlines():
            condition = re.fullmatch(r"\{\{- if (not )?(\.\S+) \}\}", line)
            if condition:
                shown = bool(value_of(condition[2])) != bool(condition[1])
            elif line == "{{- end }}":
                shown = True
            elif shown:
                lines.append(line)
        text = re.sub(r"\s*\{\{- toYaml (\.\S+) \| nindent (\d+) \}\}", block, "\n".join(lines))
        text = re.sub(r"\{\{ (\.\S+) \}\}", lambda match: str(value_of(match[1])), text)
        assert "{{" not in text, path.name
        objects += [found for found in yaml.safe_load_all(text) if found]
    return {(found["kind"], found["metadata"]["name"]): found for found in objects}


def test_the_chart_is_valid_kubernetes():
    objects = render_chart(ingress__enabled=True, worker__scaling=True)
    for (kind, _), found in objects.items():
        if kind != "ScaledObject":  # its schema is KEDA's own
            kubernetes_validate.validate(found, "1.31", strict=True)
    assert {kind for kind, _ in objects} == {
        "ConfigMap",
        "Job",
        "StatefulSet",
        "Service",
        "Ingress",
        "Deployment",
        "ScaledObject",
    }
    assert "replicas" not in objects["Deployment", "trees-worker"]["spec"]  # KEDA sets them
    plain = render_chart()
    assert plain["Deployment", "trees-worker"]["spec"]["replicas"] == 2
    assert {kind for kind, _ in plain} == {"ConfigMap", "Job", "StatefulSet", "Service", "Deployment"}
    broken = plain["Service", "trees-web"]
    broken["spec"]["port"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.31", strict=True)


def test_the_containers_of_the_chart_have_no_rights():
    for found in render_chart().values():
        pod = found["spec"].get("template", {}).get("spec") if "spec" in found else None
        if pod is None:
            continue
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"] + pod.get("initContainers", []):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/data", "/tmp"}
            words = container.get("command", [])
            if "manage.py" in words:
                command = words[words.index("manage.py") + 1]
                assert command == "migrate" or list((ROOT / "octweb").glob(f"*/management/commands/{command}.py"))


def test_workers_scale_on_every_kind_of_job_that_waits_for_them():
    query = render_chart(worker__scaling=True)["ScaledObject", "trees-worker"]["spec"]["triggers"][0]["metadata"][
        "query"
    ]
    kinds = kinds_of_queue(TrainingRun)
    assert sorted(re.findall(r"FROM (\w+)", query)) == sorted(kind._meta.db_table for kind in kinds)
    assert re.findall(r"'(\w+)'", query) == [RunStatus.QUEUED, RunStatus.RUNNING]


@pytest.mark.django_db
def test_the_query_that_scales_workers_counts_waiting_jobs():
    query = render_chart(worker__scaling=True)["ScaledObject", "trees-worker"]["spec"]["triggers"][0]["metadata"][
        "query"
    ]
    with connection.cursor() as cursor:
        cursor.execute(query)
        assert cursor.fetchone() == (0,)
