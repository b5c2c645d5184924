"""Define signals about jobs for the apps above."""

from django.dispatch import Signal

# a worker sends it when a job has ended; sender: class of the job; job_id: its id
ended = Signal()
# each worker process sends it every second from its own thread, for work that must not delay jobs
beside = Signal()
