"""Evaluate candidates as tasks, with a lower priority than users' jobs."""

from __future__ import annotations

from django_tasks import task

from octweb.experiments.work import CandidateSupervisor
from octweb.jobs.supervisor import stopping, worker_name


@task(priority=-20)
def try_candidate(job_id: str) -> str:
    """Evaluate one candidate, and return the job's last status.

    If another worker has claimed the job, leave it alone.
    """
    return CandidateSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
