"""Queue messages about ended runs, ended experiments, alarms, and reviews of models."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from octweb.core.badges import STATES
from octweb.core.ownership import may_see
from octweb.experiments.models import Candidate, Experiment
from octweb.jobs.models import FINISHED
from octweb.life.record import life_record
from octweb.life.watches import RECENT_DAYS
from octweb.life.words import day_text
from octweb.notify.delivery import queue_message
from octweb.runs.models import TrainingRun

LONG_RUN = timedelta(seconds=60)  # a shorter run sends no message, because the user has probably watched it


def on_end(sender: Any, job_id: str, **_: Any) -> None:
    """Queue a message about a long run, or about an experiment whose candidates have all ended. A signal receiver."""
    if sender is TrainingRun:
        run = TrainingRun.objects.select_related("owner").filter(pk=job_id).first()
        if run is None or not may_see(run.owner, run):  # the user has left its team
            return
        if run.started and run.finished and run.finished - run.started >= LONG_RUN:
            queue_message(run.owner, _message("run", run.pk, str(run), run.status, STATES[run.badge].words.lower()))
    elif sender is Candidate:
        experiment = Experiment.objects.select_related("owner").filter(candidates=job_id).first()
        if experiment is None or not may_see(experiment.owner, experiment):
            return
        if not experiment.candidates.exclude(status__in=FINISHED).exists():
            queue_message(experiment.owner, _message("experiment", experiment.pk, experiment.name, "ended", "ended"))


def on_alarm(sender: Any, model: Any, alarms: list[Any], **_: Any) -> None:
    """Queue a message about open alarms of a model. A signal receiver."""
    told = {alarm.pk for alarm in alarms}
    record = life_record(model, RECENT_DAYS, timezone.now(), with_parts=False)
    sentences = [f"{alarm['sentence']} {alarm['when']}" for alarm in record["alarms"] if alarm["id"] in told]
    watches = [alarm.watch for alarm in alarms]
    more = "" if len(watches) == 1 else f" and {len(watches) - 1} more"
    number = "an alarm" if len(watches) == 1 else f"{len(watches)} alarms"
    _tell_owner(model, "alarm", f"has {number} ({watches[0]}{more})", sentences)


def on_review_due(sender: Any, model: Any, review_on: date, **_: Any) -> None:
    """Queue a message about the review of a model. A signal receiver."""
    verb = "is" if review_on >= timezone.localdate() else "was"
    _tell_owner(model, "review", f"{verb} due for its review on {day_text(review_on)}")


def _tell_owner(model: Any, status: str, words: str, sentences: Sequence[str] = ()) -> None:
    """Queue a message about a model in use, with the URL of its page Life, unless its owner has left its team."""
    if not may_see(model.owner, model):
        return
    message = {
        "event": f"model.{status}",
        "id": str(model.pk),
        "name": model.title,
        "status": status,
        "words": words,
    }
    if sentences:
        message["detail"] = "\n".join(sentences)
    if settings.ADDRESS:
        message["url"] = f"{settings.ADDRESS}{reverse('registry:detail', args=[model.pk])}?mode=life"
    queue_message(model.owner, message)


def _message(kind: str, pk: Any, name: str, status: str, words: str) -> dict[str, str]:
    """Build a message: status as in the API, words as on pages, and a URL if OCTWEB_ADDRESS is set."""
    message = {"event": f"{kind}.ended", "id": str(pk), "name": name, "status": status, "words": words}
    if settings.ADDRESS:
        message["url"] = settings.ADDRESS + reverse(f"{kind}s:detail", args=[pk])
    return message
