"""Word of runs that have ended: when, how, signed, and to no address within the network of the server."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest import mock

import pytest
from django.core import mail
from django.urls import reverse
from django.utils import timezone

from octweb.experiments import actions as experiments
from octweb.experiments.models import Candidate
from octweb.jobs.models import RunStatus
from octweb.notify.models import Wish
from octweb.notify.news import MOST_FAILURES, deliver, on_end
from octweb.notify.webhook import SIGNATURE, Undelivered, _public, send
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


@pytest.fixture
def hook(settings):
    """A server on this machine, which the settings name, and what it received."""
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, self.headers[SIGNATURE], body))
            self.send_response({"/moved": 302, "/broken": 500}.get(self.path, 204))
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()
    server.server_close()


@pytest.fixture
def ended_run(owner, dataset):  # noqa: F811
    run = runs.enqueue(owner=owner, dataset=dataset, method="cart", name="Night run")
    now = timezone.now()
    TrainingRun.objects.filter(pk=run.pk).update(
        status=RunStatus.SUCCEEDED, started=now - timedelta(hours=1), finished=now
    )
    return run


def test_a_message_is_signed_and_says_what_ended(hook, owner, ended_run):
    url, received = hook
    wish = Wish.objects.create(user=owner, webhook=f"{url}/hook?a=1")
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    ((path, signature, body),) = received
    assert path == "/hook?a=1"
    assert signature == "sha256=" + hmac.new(wish.secret.encode(), body, hashlib.sha256).hexdigest()
    assert json.loads(body) == {
        "event": "run.ended",
        "id": str(ended_run.pk),
        "name": "Night run",
        "status": "succeeded",
        "words": "finished",
    }


def test_a_proof_that_no_tree_keeps_the_constraints_is_not_told_as_a_failure(hook, owner, ended_run):
    url, received = hook
    Wish.objects.create(user=owner, webhook=url)
    TrainingRun.objects.update(status=RunStatus.FAILED, summary={"status": "infeasible"})
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    assert [json.loads(body)["words"] for _, _, body in received] == ["not reachable"]


def test_short_runs_and_users_without_a_wish_hear_nothing(hook, owner, ended_run):
    url, received = hook
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    Wish.objects.create(user=owner, webhook=url)
    TrainingRun.objects.update(started=timezone.now() - timedelta(seconds=5))
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    on_end(sender=TrainingRun, job_id="00000000-0000-0000-0000-000000000000")
    assert received == []


def test_an_experiment_is_told_of_once_with_its_last_candidate(hook, owner, dataset):  # noqa: F811
    url, received = hook
    Wish.objects.create(user=owner, webhook=url)
    two = [{"method": "cart"}, {"method": "exact"}]
    experiment = experiments.start(owner=owner, dataset=dataset, candidates=two, folds=3, test_share=0.2)
    for candidate in experiment.candidates.all():
        Candidate.objects.filter(pk=candidate.pk).update(status=RunStatus.SUCCEEDED)
        on_end(sender=Candidate, job_id=str(candidate.pk))
    assert [json.loads(body)["event"] for _, _, body in received] == ["experiment.ended"]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/x", "http://", "http://user:word@example.org/", "http://127.0.0.1:9/", "http://localhost/", "http://[::1]/",
        "http://169.254.169.254/latest/", "http://10.0.0.1/", "http://0.0.0.0/", "http://[::ffff:127.0.0.1]/", "http://x:99999/",
    ],
)  # fmt: skip
def test_private_and_broken_addresses_are_refused(url):
    with pytest.raises(Undelivered):
        send(url, "secret", {})


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True), ("192.168.1.1", False), ("100.64.0.1", False), ("::ffff:10.0.0.1", False), ("fe80::1%eth0", False), ("224.0.0.1", False),
        # gateways translate these to IPv4
        ("64:ff9b::7f00:1", False), ("64:ff9b::a9fe:a9fe", False), ("64:ff9b::808:808", True), ("64:ff9b:1::808:808", False),
        ("2002:7f00:1::1", False), ("2002:808:808::1", True), ("2606:4700::1111", True), ("ff0e::1", False),
    ],
)  # fmt: skip
def test_which_addresses_are_public(address, public):
    assert _public(address) is public


@pytest.mark.parametrize("path", ["/moved", "/broken"])
def test_redirects_are_not_followed_and_failures_end_it(hook, owner, ended_run, path):
    url, received = hook
    wish = Wish.objects.create(user=owner, webhook=url + path)
    for _ in range(MOST_FAILURES + 2):
        on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    wish.refresh_from_db()
    assert [p for p, _, _ in received] == [path] * MOST_FAILURES
    assert "status" in wish.trouble
    wish.webhook = url
    assert deliver(wish, {"event": "test"})
    wish.refresh_from_db()
    assert (wish.failures, wish.trouble) == (0, "")


def test_mail_goes_where_it_is_configured_and_wished(owner, ended_run, settings):
    owner.email = "olga@example.org"
    owner.save()
    Wish.objects.create(user=owner, email=True)
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    assert mail.outbox == []
    settings.EMAIL_HOST = "mail.example.org"
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    assert mail.outbox[0].to == ["olga@example.org"]
    assert mail.outbox[0].subject == "octweb: Night run finished"  # the word of the pages
    assert "http" not in mail.outbox[0].body
    settings.ADDRESS = "https://trees.example.org"
    on_end(TrainingRun, job_id=str(ended_run.pk))
    assert f"https://trees.example.org/runs/{ended_run.pk}/" in mail.outbox[1].body


def test_the_page_keeps_wishes_and_refuses_bad_addresses(client, owner, hook):
    url, received = hook
    client.force_login(owner)
    refused = client.post(reverse("notify"), {"webhook": "gopher://x"})
    assert refused.status_code == 200
    assert 'value="gopher://x"' in refused.content.decode()  # what was typed can be mended
    assert not Wish.objects.exists()
    assert client.post(reverse("notify"), {"webhook": url, "test": "1"}).status_code == 302
    assert len(received) == 1
    assert "HMAC" in client.get(reverse("notify")).content.decode()
    Wish.objects.update(failures=MOST_FAILURES, trouble="No answer.")
    client.post(reverse("notify"), {"webhook": url})  # "save to try again"
    assert (Wish.objects.get().failures, Wish.objects.get().trouble) == (0, "")
    client.post(reverse("notify"), {"webhook": ""})
    assert Wish.objects.get().webhook == ""


def test_a_test_goes_every_way_that_was_chosen(client, owner, settings):
    client.force_login(owner)
    answer = client.post(reverse("notify"), {"webhook": "", "test": "1"}, follow=True).content.decode()
    assert "Nothing was sent" in answer
    owner.email, settings.EMAIL_HOST = "olga@example.org", "mail.example.org"
    owner.save()
    answer = client.post(reverse("notify"), {"email": "on", "test": "1"}, follow=True).content.decode()
    assert "A test was sent to olga@example.org." in answer
    assert mail.outbox[0].to == ["olga@example.org"]
    with mock.patch("octweb.notify.news.send_mail", side_effect=ConnectionRefusedError):
        answer = client.post(reverse("notify"), {"email": "on", "test": "1"}, follow=True).content.decode()
    assert "could not be sent by e-mail" in answer
