"""The task of a training run: supervise its child. The payload is the run's id; the run's row says everything else."""

from __future__ import annotations

from django_tasks import task

from octweb.jobs.supervisor import stopping, worker_name
from octweb.runs.training import TrainingSupervisor


@task()
def train_run(run_id: str) -> str:
    """Train one run to its end; returns the run's last status. A run that somebody else has is left alone."""
    return TrainingSupervisor(job_id=run_id, worker=worker_name(), stopping=stopping).run()
