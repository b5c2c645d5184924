"""Task of a workbench. It has priority over trainings, because a user waits for its answers."""

from __future__ import annotations

from django_tasks import task

from octweb.jobs.supervisor import stopping, worker_name
from octweb.workbench.work import EditingSupervisor


@task(priority=20)
def edit(job_id: str) -> str:
    """Serve one workbench until it is idle, and return the job's last status.

    If another worker has claimed the job, leave it alone.
    """
    return EditingSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
