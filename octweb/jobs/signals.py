"""Signals about jobs for the applications above."""

from django.dispatch import Signal

ended = Signal()  # sender: the kind of job; job_id: its id. Sent by the worker once, when a job has come to its end
beside = Signal()  # sent by each worker process every second in a thread of its own, for what must not hold its jobs
