"""Train runs as tasks. The argument is the run's id."""

from __future__ import annotations

from django_tasks import task

from octweb.jobs.supervisor import stopping, worker_name
from octweb.runs.training import TrainingSupervisor


@task()
def train_run(run_id: str) -> str:
    """Train one run to its end, and return its last status. "not claimed" if another worker has it."""
    return TrainingSupervisor(job_id=run_id, worker=worker_name(), stopping=stopping).run()
