"""Run a batch prediction as a task, with a higher priority than trainings.

Trainings may take hours.
"""

from __future__ import annotations

from django_tasks import task

from octweb.batch.work import PredictionSupervisor
from octweb.jobs.supervisor import stopping, worker_name


@task(priority=10)
def predict_batch(job_id: str) -> str:
    """Predict one file, and return the job's last status. If another worker has claimed the job, leave it alone."""
    return PredictionSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
