"""Task of a candidate: supervise its child process, after jobs of users."""

from __future__ import annotations

from django_tasks import task

from octweb.experiments.work import CandidateSupervisor
from octweb.jobs.supervisor import stopping, worker_name


@task(priority=-20)
def try_candidate(job_id: str) -> str:
    """Evaluate one candidate, and return the job's last status. A job claimed by another worker is left alone."""
    return CandidateSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
