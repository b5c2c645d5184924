"""The one task: supervise the child process of a run. Its payload is the run's id; the run's row says everything else."""

from __future__ import annotations

from django_tasks import task

from octweb.runs.supervisor import Supervisor, stopping, worker_name


@task()
def train_run(run_id: str) -> str:
    """Train one run to its end; returns the run's last status. A run that somebody else has is left alone."""
    return Supervisor(run_id=run_id, worker=worker_name(), stopping=stopping).run()
