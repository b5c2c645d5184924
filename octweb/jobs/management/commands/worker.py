"""Run one job at a time, and recover lost jobs: `manage.py worker`."""

from __future__ import annotations

import logging
import signal
import threading
import time
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management import CommandParser
from django.core.management.base import BaseCommand
from django.db import DatabaseError, Error, connection
from django.utils import timezone
from django.utils.crypto import get_random_string
from django_tasks_db.management.commands.db_worker import Worker

from octweb.core import files, idempotency
from octweb.demo import actions as demo
from octweb.jobs import fork_server
from octweb.jobs.child import environment_of_child
from octweb.jobs.queue import tidy
from octweb.jobs.reaper import beat, reap, sweep
from octweb.jobs.signals import beside
from octweb.jobs.supervisor import TICK_SECONDS, stopping, worker_name
from octweb.private_files import protect_new_files

log = logging.getLogger(__name__)

TIDY_SECONDS = 3600.0
BESIDE_SECONDS = 1.0
BESIDE_QUEUE = "beside"  # queue of short jobs, which do not wait for a training
VISITS_SECONDS = 60.0  # time between two checks for expired demo visits


class Slot(Worker):
    """A django-tasks worker that requeues its job at SIGTERM, because a job may take hours.

    `beside` is the slot of short jobs. It runs in a thread, so it gets no signals of its own.
    """

    beside: Slot | None = None

    def shutdown(self, signum: int, frame: FrameType | None) -> None:
        log.info("%s: ending, a run in progress goes back to the queue", signal.strsignal(signum))
        self.running = False
        stopping.set()
        if self.beside is not None:
            self.beside.running = False
        if not self.running_task:
            raise SystemExit(0)


class Command(BaseCommand):
    help = "Train queued runs, one at a time. Start several for several slots, on this host or others."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--interval", type=float, default=0.2, help="seconds between looks at an empty queue")
        parser.add_argument("--reap-every", type=float, default=5.0, help="seconds between looks at lost runs")
        parser.add_argument("--batch", action="store_true", help="end when the queue is empty")

    def handle(self, *args: Any, **options: Any) -> None:
        protect_new_files()
        files.protect_stored()
        threading.Thread(target=_reap_for_ever, args=(options["reap_every"],), name="reaper", daemon=True).start()
        threading.Thread(target=_work_beside, name="beside", daemon=True).start()
        if settings.FORK_SERVER and not options["batch"]:
            fork_server.keep()
            fork_server.living(environment_of_child())
        queue_names = ["default", BESIDE_QUEUE] if options["batch"] else ["default"]
        slot = _slot(queue_names, options["interval"], batch=options["batch"])
        slot.configure_signals()
        thread = None
        if not options["batch"]:
            slot.beside = _slot([BESIDE_QUEUE], options["interval"])
            thread = threading.Thread(target=_run_beside, args=(slot.beside,), name="short jobs", daemon=True)
            thread.start()
        log.info("worker ready")
        try:
            _run(slot)
            if options["batch"]:
                _send_beside()  # the last jobs may have queued messages
        finally:
            if thread is not None:
                thread.join(settings.WORKER_GRACE_SECONDS + TICK_SECONDS)  # its job goes back to the queue
            fork_server.give_up()


def _slot(queue_names: list[str], interval: float, *, batch: bool = False) -> Slot:
    return Slot(
        queue_names=queue_names,
        excluded_queue_names=[],
        interval=interval,
        batch=batch,
        backend_name="default",
        startup_delay=False,
        max_tasks=None,
        worker_id=get_random_string(32),
    )


def _run(slot: Slot) -> None:
    """Run jobs until the worker ends. If the database does not answer, try again."""
    while not stopping.is_set():
        try:
            slot.run()
            return
        except Error as error:
            log.warning("the database does not answer, trying again: %s", error)
            connection.close()
            time.sleep(1)


def _run_beside(slot: Slot) -> None:
    """Run short jobs in this thread until the worker ends, after errors too. Nothing would start the thread again."""
    while slot.running and not stopping.is_set():
        try:
            _run(slot)
        except Exception:
            log.exception("the slot of short jobs failed, trying again")
            stopping.wait(1)
        finally:
            connection.close()


def _tidy() -> None:
    try:
        tidy(timezone.now())
        idempotency.purge(timezone.now())
        files.tidy()
    except DatabaseError:
        raise
    except Exception:  # a file store may raise anything, and lost jobs must be recovered nevertheless
        log.exception("reaper: old files could not be removed")


def _end_visits() -> None:
    try:
        demo.end_due(timezone.now())
    except DatabaseError:
        raise
    except Exception:  # the next check retries
        log.exception("reaper: a demo account could not be deleted")


def _reap_for_ever(every: float) -> None:
    tidied = -TIDY_SECONDS
    looked = -VISITS_SECONDS
    while True:
        try:
            beat(worker_name())
            reap()
            sweep()
            if time.monotonic() - looked > VISITS_SECONDS:
                looked = time.monotonic()
                _end_visits()
            if time.monotonic() - tidied > TIDY_SECONDS:
                tidied = time.monotonic()
                _tidy()
        except DatabaseError as error:
            log.warning("reaper: the database does not answer: %s", error)
        finally:
            connection.close()
        if stopping.wait(every):
            return


def _work_beside() -> None:
    while not stopping.wait(BESIDE_SECONDS):
        _send_beside()


def _send_beside() -> None:
    """Send the signal `beside`. Django logs errors of receivers. After a database error, close the connection."""
    for receiver, error in beside.send_robust(sender=None):
        if isinstance(error, DatabaseError):
            log.warning("%s: the database does not answer: %s", receiver.__name__, error)
            connection.close()
