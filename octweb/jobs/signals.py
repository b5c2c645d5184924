"""Signals about jobs for the applications above."""

from django.dispatch import Signal

# a worker sends it after its attempt if the job has ended; sender: the class of the job; job_id: its id
ended = Signal()
# each worker process sends it every second from a thread of its own, for work that must not delay jobs
beside = Signal()
