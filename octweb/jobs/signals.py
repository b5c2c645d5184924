"""Signals about jobs for the applications above."""

from django.dispatch import Signal

ended = Signal()  # sender: the kind of job; job_id: its id. Sent by the worker once, when a job has come to its end
