"""Run the job of a dossier as a task of the queue for short jobs, which does not wait for trainings."""

from __future__ import annotations

from django_tasks import task

from octweb.dossier.work import DossierSupervisor
from octweb.jobs.supervisor import stopping, worker_name


@task(priority=10, queue_name="beside")
def make_dossier(job_id: str) -> str:
    """Make one dossier, and return the job's last status. If another worker has claimed the job, leave it alone."""
    return DossierSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
