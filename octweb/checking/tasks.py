"""Run checks and comparisons as tasks.

Checks have a higher priority than trainings. Comparisons have the same.
"""

from __future__ import annotations

from django_tasks import task

from octweb.checking.comparing_work import ComparisonSupervisor
from octweb.checking.work import CheckSupervisor
from octweb.jobs.supervisor import stopping, worker_name


@task(priority=10)
def check_model(job_id: str) -> str:
    """Check one model, and return the job's last status. If another worker has claimed the job, leave it alone."""
    return CheckSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()


@task()
def compare_model(job_id: str) -> str:
    """Compare one imported tree, and return the job's last status.

    If another worker has claimed the job, leave it alone.
    """
    return ComparisonSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
