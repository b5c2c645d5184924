"""The task of a workbench: keep its process warm while somebody works on it. It goes before trainings, since a person waits."""

from __future__ import annotations

from django_tasks import task

from octweb.jobs.supervisor import stopping, worker_name
from octweb.workbench.work import EditingSupervisor


@task(priority=20)
def edit(job_id: str) -> str:
    """Serve one workbench until it is idle; returns the job's last status. One that somebody else has is left alone."""
    return EditingSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
