"""Each call has an id in its answer, on its error page and in the logs, which name no person."""

from __future__ import annotations

import io
import json
import logging
import logging.config

import pytest
from django.urls import path
from gunicorn.config import Config
from prometheus_client import REGISTRY

from octweb.core import request_log
from octweb.core.logs import log_settings
from octweb.core.management.commands.serve import JSON_LOGGER
from octweb.core.request_log import HEADER, NO_ROUTE, RequestLog
from octweb.serving.wire import close_after
from octweb.urls import handler500  # noqa: F401  (Django reads handler500 here)
from octweb.urls import urlpatterns as real_patterns


def fail(request):
    raise ValueError("the cell 'Olga Petrova' is not a number")


urlpatterns = [path("fails/", fail), *real_patterns]


class Lines:
    """Collect the log lines of one logger in one of octweb's formats."""

    def __init__(self, style: str) -> None:
        self.stream = io.StringIO()
        config = log_settings(style, level="INFO", access=True)
        formatter = config["formatters"][style]
        factory = formatter.pop("()")
        arguments = {"fmt": formatter["format"], "style": formatter["style"]} if formatter else {}
        self.handler = logging.StreamHandler(self.stream)
        self.handler.setFormatter(factory(**arguments))

    def text(self) -> str:
        return self.stream.getvalue()

    def entries(self) -> list[dict]:
        return [json.loads(line) for line in self.text().splitlines()]


@pytest.fixture
def lines(request, monkeypatch):
    written = Lines(getattr(request, "param", "json"))
    logging.getLogger().addHandler(written.handler)
    monkeypatch.setattr(request_log.log, "level", logging.INFO)
    request_log.log.manager._clear_cache()
    yield written
    logging.getLogger().removeHandler(written.handler)


@pytest.mark.django_db
def test_request_id_is_on_error_page_and_in_logs(client, media, settings, lines):
    settings.ROOT_URLCONF = __name__
    client.raise_request_exception = False
    answer = client.get("/fails/?name=Olga+Petrova", headers={"user-agent": "Olga's browser"})
    assert answer.status_code == 500
    number = answer[HEADER]
    assert f"request {number}" in answer.content.decode()
    entries = lines.entries()
    assert {entry["request_id"] for entry in entries} == {number}
    (fault,) = [entry for entry in entries if "exception" in entry]
    assert fault["exception"] == "ValueError"
    assert any(place.endswith(" fail") for place in fault["places"])
    (access,) = [entry for entry in entries if entry["logger"] == "octweb.access"]
    assert (access["method"], access["path"], access["route"], access["status"]) == ("GET", "/fails/", "fails/", 500)
    assert access["ms"] > 0
    assert "Olga" not in lines.text()
    assert "127.0.0.1" not in lines.text()


@pytest.mark.parametrize("lines", ["text", "json"], indirect=True)
def test_secret_addresses_are_not_logged(client, db, media, lines):
    client.get("/accounts/reset/MQ/a-secret-token/")
    client.get("/accounts/reset/MQ/a-secret-token")
    client.get("/public/7f2c1b3a-0000-4000-8000-000000000000/")
    assert "/accounts/reset/…" in lines.text()
    assert "secret-token" not in lines.text()
    assert "7f2c1b3a" not in lines.text()


def test_ids_of_proxies_are_kept_and_others_replaced(client):
    assert client.get("/healthz", headers={"x-request-id": "a1-b2"})[HEADER] == "a1-b2"
    for bad in ("two words", "line\nbreak", "x" * 65, '"', "-", "é"):
        kept = client.get("/healthz", headers={"x-request-id": bad})[HEADER]
        assert kept != bad
        assert len(kept) == 16
    assert client.get("/healthz")[HEADER] != client.get("/healthz")[HEADER]


def test_wrapper_adds_the_id_once_and_counts_failures():
    seen = []

    def application(environ, start_response):
        if environ["PATH_INFO"] == "/breaks":
            raise RuntimeError
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"well"]

    def start(status, headers, *rest):
        seen.append(dict(headers))

    wrapped = RequestLog(application)
    assert list(wrapped({"REQUEST_METHOD": "GET", "PATH_INFO": "/", "HTTP_X_REQUEST_ID": "a1"}, start)) == [b"well"]
    assert seen == [{"Content-Type": "text/plain", HEADER: "a1"}]
    before = sample("500", method="other")
    with pytest.raises(RuntimeError):
        wrapped({"REQUEST_METHOD": "BREW", "PATH_INFO": "/breaks"}, start)
    assert sample("500", method="other") == before + 1


def test_wrapped_start_still_closes_the_connection():
    class Response:
        closed = False

        def start_response(self, status, headers):
            pass

        def force_close(self):
            self.closed = True

    response = Response()

    def application(environ, start_response):
        close_after(start_response)
        start_response("200 OK", [])
        return []

    RequestLog(application)({"REQUEST_METHOD": "GET"}, response.start_response)
    assert response.closed


def sample(status: str, *, method: str = "GET", route: str = NO_ROUTE) -> float:
    labels = {"method": method, "route": route, "status": status}
    return REGISTRY.get_sample_value("octweb_http_requests_total", labels) or 0.0


@pytest.mark.django_db
def test_calls_are_counted_by_route(client, client_of, media, owner, approved):
    places = [
        ("/datasets/7f2c1b3a-0000-4000-8000-000000000000/", "datasets/<uuid:pk>/", "302"),
        ("/healthz", "healthz", "200"),
        ("/made-up-1/", NO_ROUTE, "404"),
        ("/", "/", "200"),
    ]
    for address, route, status in places:
        before = sample(status, route=route)
        assert client.get(address).status_code == int(status)
        assert sample(status, route=route) == before + 1, address
    # valid predictions are answered before Django resolves their address
    route = "api/v1/models/<uuid:pk>/predict/"
    before = sample("200", method="POST", route=route)
    row = {"width": 7.5, "height": 0.1, "flag": 1, "colour": "red"}
    answer = client_of(owner).post(f"/api/v1/models/{approved.pk}/predict/", {"rows": [row]}, format="json")
    assert (answer.status_code, HEADER in answer) == (200, True)
    assert sample("200", method="POST", route=route) == before + 1


def test_log_settings_turn_the_access_log_on_and_off():
    levels = [
        log_settings("json", level="INFO", access=on)["loggers"]["octweb.access"]["level"] for on in (True, False)
    ]
    assert levels == ["INFO", "CRITICAL"]


def test_gunicorn_writes_its_messages_as_json_too():
    config = Config()
    config.set("logger_class", JSON_LOGGER)
    logger = config.logger_class(config)
    stream = io.StringIO()
    logger.error_log.handlers[0].setStream(stream)
    logger.info("Booting worker with pid: %s", 7)
    assert json.loads(stream.getvalue())["message"] == "Booting worker with pid: 7"


@pytest.mark.django_db
@pytest.mark.parametrize("lines", ["text", "json"], indirect=True)
def test_no_address_writes_a_second_line(client, media, lines):
    """Routes with a name accept %0A in it."""
    client.get("/v2/models/a%0A2026-01-01%20INFO%20octweb.access%20forged/ready")
    assert "forged" in lines.text()
    assert not [line for line in lines.text().splitlines() if line.startswith("2026-01-01")]


def test_path_is_logged_in_readable_form(lines):
    def application(environ, start_response):
        environ[request_log.CALL].route = "v2/models/<str:name>"
        start_response("200 OK", [])
        return []

    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/v2/models/café".encode().decode("latin-1")}
    RequestLog(application)(environ, lambda *arguments: None)
    assert [entry["path"] for entry in lines.entries()] == ["/v2/models/café"]


def test_name_that_is_not_utf8_is_logged_as_json(lines):
    # Not through a logger: pytest would keep the text, and its workers send only valid UTF-8.
    name = ("table\udcff.csv",)
    record = logging.LogRecord("octweb", logging.WARNING, "", 0, "cannot read %s", name, None)
    lines.handler.handle(record)
    assert [entry["message"] for entry in lines.entries()] == ["cannot read table\udcff.csv"]
