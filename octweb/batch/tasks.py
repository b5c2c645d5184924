"""Task of a batch prediction: supervise its child process.

It goes before trainings, which may take hours.
"""

from __future__ import annotations

from django_tasks import task

from octweb.batch.work import PredictionSupervisor
from octweb.jobs.supervisor import stopping, worker_name


@task(priority=10)
def predict_batch(job_id: str) -> str:
    """Predict one file, and return the job's last status. A job claimed by another worker is left alone."""
    return PredictionSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
