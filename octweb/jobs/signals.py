"""Signals about jobs for the applications above."""

from django.dispatch import Signal

ended = Signal()  # sender: the kind of job; job_id: its id. A worker sends it after its attempt, if the job has ended
beside = Signal()  # each worker process sends it every second from a separate thread, for work that must not delay jobs
