"""Count sources as tasks. The argument is the job's id."""

from __future__ import annotations

from django_tasks import task

from octweb.jobs.supervisor import stopping, worker_name
from octweb.sources.work import CountSupervisor


@task()
def count_source(job_id: str) -> str:
    """Count one source to its end, and return the job's last status. "not claimed" if another worker has it."""
    return CountSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
