"""Task of prices of staying. They queue with trainings."""

from __future__ import annotations

from django_tasks import task

from octweb.challengers.price_work import PriceSupervisor
from octweb.jobs.supervisor import stopping, worker_name


@task()
def find_price(job_id: str) -> str:
    """Find one price, and return the job's last status. A job claimed by another worker is left alone."""
    return PriceSupervisor(job_id=job_id, worker=worker_name(), stopping=stopping).run()
