"""Messages about ended runs: when, how, signed, and never into the network of the server."""

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
from octweb.jobs.management.commands import worker
from octweb.jobs.models import RunStatus
from octweb.notify import delivery as deliveries
from octweb.notify.delivery import MAX_FAILURES, MAX_TRIES, MAX_WAITING_TESTS, deliver_due
from octweb.notify.models import Delivery, DeliveryState, Way, Wish
from octweb.notify.receivers import on_end
from octweb.notify.webhook import SIGNATURE
from octweb.runs import actions as runs
from octweb.runs.models import TrainingRun
from tests.octweb.runs.conftest import csv_file, dataset  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media")]


@pytest.fixture
def hook(settings):
    """Provide a server on this machine, which the settings allow, and what it received."""
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


def deliver_all() -> None:
    """Try all waiting deliveries, whenever they are due, until each has arrived or was given up."""
    while Delivery.objects.filter(state=DeliveryState.WAITING).update(due=timezone.now()):
        deliver_due()


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
    assert received == []  # the worker sends nothing itself, so it can start its next job
    deliver_all()
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


def test_proved_infeasibility_is_not_reported_as_failure(hook, owner, ended_run):
    url, received = hook
    Wish.objects.create(user=owner, webhook=url)
    TrainingRun.objects.update(status=RunStatus.FAILED, summary={"status": "infeasible"})
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    deliver_all()
    assert [json.loads(body)["words"] for _, _, body in received] == ["not reachable"]


def test_short_runs_and_opted_out_users_get_no_message(hook, owner, ended_run):
    url, received = hook
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    Wish.objects.create(user=owner, webhook=url)
    TrainingRun.objects.update(started=timezone.now() - timedelta(seconds=5))
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    on_end(sender=TrainingRun, job_id="00000000-0000-0000-0000-000000000000")
    deliver_all()
    assert received == []
    assert not Delivery.objects.exists()


def test_experiment_is_reported_once_after_its_last_candidate(hook, owner, dataset):  # noqa: F811
    url, received = hook
    Wish.objects.create(user=owner, webhook=url)
    two = [{"method": "cart"}, {"method": "exact"}]
    experiment = experiments.start(owner=owner, dataset=dataset, candidates=two, folds=3, test_share=0.2)
    for candidate in experiment.candidates.all():
        Candidate.objects.filter(pk=candidate.pk).update(status=RunStatus.SUCCEEDED)
        on_end(sender=Candidate, job_id=str(candidate.pk))
    deliver_all()
    assert [json.loads(body)["event"] for _, _, body in received] == ["experiment.ended"]


@pytest.mark.parametrize("path", ["/moved", "/broken"])
def test_failing_address_is_switched_off_after_failures(hook, owner, ended_run, path):
    """Redirects are not followed. Each message is tried `MAX_TRIES` times."""
    url, received = hook
    wish = Wish.objects.create(user=owner, webhook=url + path)
    for _ in range(MAX_FAILURES + 2):
        on_end(sender=TrainingRun, job_id=str(ended_run.pk))
        deliver_all()
    wish.refresh_from_db()
    assert [p for p, _, _ in received] == [path] * MAX_FAILURES * MAX_TRIES
    assert "status" in wish.trouble
    Wish.objects.update(webhook=url, failures=MAX_FAILURES - 1)
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    deliver_all()
    wish.refresh_from_db()
    assert (wish.failures, wish.trouble) == (0, "")


def test_failed_delivery_is_retried_with_growing_delays(hook, owner, ended_run):
    url, received = hook
    Wish.objects.create(user=owner, webhook=f"{url}/broken")
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    delays = []
    for _ in range(MAX_TRIES):
        before = timezone.now()
        assert deliver_due() == 1
        assert deliver_due() == 0  # the next try is not due yet
        delivery = Delivery.objects.get()
        delays.append(round((delivery.due - before).total_seconds()))
        Delivery.objects.update(due=timezone.now())
    assert delays[:-1] == [30, 120, 480, 1920]
    assert (delivery.state, delivery.tries) == (DeliveryState.FAILED, MAX_TRIES)
    assert "status 500" in delivery.error
    assert len(received) == MAX_TRIES
    assert deliver_due() == 0


def test_two_workers_claim_a_delivery_once(hook, owner, ended_run):
    url, _ = hook
    Wish.objects.create(user=owner, webhook=url)
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    assert len(list(deliveries._claim_due())) == 1
    assert list(deliveries._claim_due()) == []


def test_delivery_of_a_dead_worker_is_sent_by_the_next_one(hook, owner, ended_run):
    url, received = hook
    Wish.objects.create(user=owner, webhook=url)
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    list(deliveries._claim_due())
    Delivery.objects.update(due=timezone.now())  # as if the lease had run out
    assert deliver_due() == 1
    assert len(received) == 1
    assert Delivery.objects.get().state == DeliveryState.DELIVERED


def test_worker_sends_messages_beside_its_jobs(hook, owner, ended_run):
    url, received = hook
    Wish.objects.create(user=owner, webhook=url)
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    worker._send_beside()
    assert len(received) == 1


def test_users_do_not_wait_for_the_backlog_of_another_one(hook, owner, stranger):
    url, received = hook
    for user in (owner, stranger):
        Wish.objects.create(user=user, webhook=f"{url}/{user.username}")
    for _ in range(30):
        Delivery.objects.create(owner=owner, way=Way.WEBHOOK, message={})
    Delivery.objects.create(owner=stranger, way=Way.WEBHOOK, message={})
    assert deliver_due() == 2
    assert sorted(path for path, _, _ in received) == ["/olga", "/sam"]


def test_mail_is_sent_if_configured_and_requested(owner, ended_run, settings):
    owner.email = "olga@example.org"
    owner.save()
    Wish.objects.create(user=owner, email=True)
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    deliver_all()
    assert mail.outbox == []
    settings.EMAIL_HOST = "mail.example.org"
    on_end(sender=TrainingRun, job_id=str(ended_run.pk))
    deliver_all()
    assert mail.outbox[0].to == ["olga@example.org"]
    assert mail.outbox[0].subject == "octweb: Night run finished"  # the subject uses the same word as the pages
    assert "http" not in mail.outbox[0].body
    settings.ADDRESS = "https://trees.example.org"
    on_end(TrainingRun, job_id=str(ended_run.pk))
    deliver_all()
    assert f"https://trees.example.org/runs/{ended_run.pk}/" in mail.outbox[1].body


def test_the_page_keeps_wishes_and_refuses_bad_addresses(client, owner, hook):
    url, received = hook
    client.force_login(owner)
    refused = client.post(reverse("notify"), {"webhook": "gopher://x"})
    assert refused.status_code == 200
    assert 'value="gopher://x"' in refused.content.decode()  # the field keeps the text, so that the user can correct it
    assert not Wish.objects.exists()
    assert client.post(reverse("notify"), {"webhook": url, "test": "1"}).status_code == 302
    assert "Waiting" in client.get(reverse("notify")).content.decode()
    deliver_all()
    assert len(received) == 1
    assert "Delivered" in client.get(reverse("notify")).content.decode()
    assert "HMAC" in client.get(reverse("notify")).content.decode()
    Wish.objects.update(failures=MAX_FAILURES, trouble="No answer.")
    client.post(reverse("notify"), {"webhook": url})  # saving the form again is how a user retries
    assert (Wish.objects.get().failures, Wish.objects.get().trouble) == (0, "")
    client.post(reverse("notify"), {"webhook": ""})
    assert Wish.objects.get().webhook == ""


def test_test_message_uses_every_chosen_channel(client, owner, settings):
    client.force_login(owner)
    answer = client.post(reverse("notify"), {"webhook": "", "test": "1"}, follow=True).content.decode()
    assert "Nothing was sent" in answer
    owner.email = "olga@example.org"
    settings.EMAIL_HOST = "mail.example.org"
    owner.save()
    client.post(reverse("notify"), {"email": "on", "test": "1"})
    deliver_all()
    assert mail.outbox[0].to == ["olga@example.org"]
    with mock.patch("octweb.notify.delivery.send_mail", side_effect=ConnectionRefusedError):
        client.post(reverse("notify"), {"email": "on", "test": "1"})
        deliver_all()
    answer = client.get(reverse("notify")).content.decode()
    assert "The mail server refused the message." in answer


def test_second_test_waits_for_the_first_one(client, owner, hook):
    """Twenty requests queue one test, and none waits for the receiver."""
    url, received = hook
    client.force_login(owner)
    for _ in range(20):
        client.post(reverse("notify"), {"webhook": f"{url}/broken", "test": "1"})
    assert received == []
    assert Delivery.objects.count() == 1
    page = client.get(reverse("notify")).content.decode()
    assert "Your last test is still on its way." in page
    assert 'hx-trigger="load delay:1s"' in page
    deliver_all()
    assert len(received) == 1  # a test is not retried
    text = client.get(reverse("notify"), headers={"HX-Request": "true"}).content.decode()
    assert "status 500" in text
    assert "hx-get" not in text
    assert Wish.objects.get().failures == 0
    client.post(reverse("notify"), {"webhook": url, "test": "1"})
    assert Delivery.objects.count() == 2


def test_tests_of_all_users_are_bounded(client, owner, stranger, hook):
    url, _ = hook
    message = {"name": "A test", "words": "sent"}
    for _ in range(MAX_WAITING_TESTS):
        Delivery.objects.create(owner=stranger, way=Way.WEBHOOK, message=message, is_test=True)
    client.force_login(owner)
    answer = client.post(reverse("notify"), {"webhook": url, "test": "1"}, follow=True).content.decode()
    assert "Too many tests of other users" in answer
    assert not Delivery.objects.filter(owner=owner).exists()
