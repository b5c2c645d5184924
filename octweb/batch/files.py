"""Serve the result file of a batch prediction."""

from __future__ import annotations

from django.http import FileResponse, Http404

from octweb.batch.actions import result_name
from octweb.batch.models import BatchPrediction
from octweb.core.badges import STATES
from octweb.core.files import local_path
from octweb.core.problems import Conflict

# format of the answers → media type
MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


def result_file(job: BatchPrediction) -> FileResponse:
    """Return the answers as a streaming response. Raises Conflict while there are none."""
    if not job.is_ready:
        advice = "Predict the rows again." if job.is_finished else "Try again when it has finished."
        raise Conflict(f"There is no result: the prediction is {STATES[job.status].words.lower()}. {advice}")
    try:
        stream = local_path(job.result).open("rb")
    except FileNotFoundError as error:
        raise Http404("The file with the answers is gone. Predict the rows again.") from error
    return FileResponse(stream, as_attachment=True, filename=result_name(job), content_type=MEDIA_TYPES[job.format])
