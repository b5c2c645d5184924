"""What is sent when a long run, or a whole experiment, has ended."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import F
from django.urls import reverse

from octweb.core.badges import STATES
from octweb.experiments.models import Candidate, Experiment
from octweb.jobs.models import FINISHED
from octweb.notify.models import Wish
from octweb.notify.webhook import Undelivered, send
from octweb.runs.models import TrainingRun

log = logging.getLogger(__name__)
LONG = timedelta(seconds=60)  # runs that ended sooner were watched
MOST_FAILURES = 5


def on_end(sender: Any, job_id: str, **_: Any) -> None:
    """Hear of the end of a job. An experiment ends with its last candidate."""
    if sender is TrainingRun:
        run = TrainingRun.objects.select_related("owner").filter(pk=job_id).first()
        if run is not None and run.started and run.finished and run.finished - run.started >= LONG:
            tell(run.owner, _message("run", run.pk, str(run), run.status, STATES[run.badge].words.lower()))
    elif sender is Candidate:
        experiment = Experiment.objects.select_related("owner").filter(candidates=job_id).first()
        if experiment is not None and not experiment.candidates.exclude(status__in=FINISHED).exists():
            tell(experiment.owner, _message("experiment", experiment.pk, experiment.name, "ended", "ended"))


def tell(user: Any, message: dict[str, str]) -> None:
    """Send the message in the ways that the user wishes; what does not arrive is noted and harms nothing."""
    wish = Wish.objects.select_related("user").filter(user=user).first()
    if wish is None or not user.is_active:
        return
    if by_mail(wish):
        mail(user, message)
    if wish.webhook and wish.failures < MOST_FAILURES:
        deliver(wish, message)


def by_mail(wish: Wish) -> bool:
    """Whether the user wishes mails, has an address, and this server sends any."""
    return bool(wish.email and wish.user.email and settings.EMAIL_HOST)


def deliver(wish: Wish, message: dict[str, str]) -> bool:
    """Send to the address of the wish and note how it went."""
    try:
        send(wish.webhook, wish.secret, message)
    except Undelivered as error:
        Wish.objects.filter(pk=wish.pk).update(failures=F("failures") + 1, trouble=str(error)[:300])
        log.info("a message to the address of user %s did not arrive: %s", wish.user_id, error)
        return False
    Wish.objects.filter(pk=wish.pk).update(failures=0, trouble="")
    return True


def mail(user: Any, message: dict[str, str]) -> bool:
    """Send to the address of the account; whether the mail server took it."""
    words = message["words"]
    body = f"{message['name']}: {words}.\n" + (f"\n{message['url']}\n" if "url" in message else "")
    try:
        subject = " ".join(f"octweb: {message['name']} {words}".split())
        send_mail(subject, body, settings.DEFAULT_FROM_EMAIL, [user.email])
    except OSError as error:
        log.warning("a mail to user %s was not sent: %s", user.pk, error)
        return False
    return True


def _message(kind: str, pk: Any, name: str, status: str, words: str) -> dict[str, str]:
    """What is sent: the status as in the API, in words as on the pages, and the address of the page where the server knows its own."""
    message = {"event": f"{kind}.ended", "id": str(pk), "name": name, "status": status, "words": words}
    if settings.ADDRESS:
        message["url"] = settings.ADDRESS + reverse(f"{kind}s:detail", args=[pk])
    return message
