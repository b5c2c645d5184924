"""The task of a workbench, prior to trainings, since a user waits."""

from __future__ import annotations

from django_tasks import task

from octweb.jobs.supervisor import stopping, worker_name
from octweb.workbench.work import EditingSupervisor


@task(priority=20)
def edit(job_id: str) -> str:
    """Serve one workbench until it is idle. Returns what `Supervisor.run` returns: "not claimed" if another worker has it."""
    return EditingSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
