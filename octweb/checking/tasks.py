"""The task of a check: supervise its child. It goes before trainings, which may take hours."""

from __future__ import annotations

from django_tasks import task

from octweb.checking.work import CheckSupervisor
from octweb.jobs.supervisor import stopping, worker_name


@task(priority=10)
def check_model(job_id: str) -> str:
    """Check one model; returns the job's last status. A job that somebody else has is left alone."""
    return CheckSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
