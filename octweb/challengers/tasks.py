"""Run searches for prices of staying as tasks, with the priority of trainings."""

from __future__ import annotations

from django_tasks import task

from octweb.challengers.price_work import PriceSupervisor
from octweb.jobs.supervisor import stopping, worker_name


@task()
def find_price(job_id: str) -> str:
    """Find one price, and return the job's last status. If another worker has claimed the job, leave it alone."""
    return PriceSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
