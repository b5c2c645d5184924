"""Show sources: list, choice of rows, preview of a sample, and counts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from octweb.core.problems import Busy, Conflict, Unprocessable
from octweb.core.refusals import refusals_said
from octweb.datasets import actions as datasets
from octweb.datasets import reader
from octweb.datasets.choice import ColumnChoice, ReadOptions
from octweb.datasets.models import Upload
from octweb.datasets.preview_views import preview_page
from octweb.datasets.sources import chosen_rows, source_of, sources_of
from octweb.jobs.waiting import wait_of
from octweb.sources import actions
from octweb.sources.forms import RowsForm, SettingsForm
from octweb.sources.models import SourceCount
from octweb.sources.work import chosen_words
from trainer.counts.sample import SAMPLE_FILES, SAMPLE_ROWS
from trainer.errors import DataError, ParameterError

SHOWN_COUNTS = 50


@login_required
@require_GET
def source_list(request: HttpRequest) -> HttpResponse:
    counts = SourceCount.objects.visible_to(request.user).select_related("owner", "dataset")[:SHOWN_COUNTS]
    context = {"sources": sources_of(request.user), "counts": counts, "named": bool(settings.SECRET_SOURCES)}
    return render(request, "sources/list.html", context)


@login_required
def source_rows(request: HttpRequest, name: str) -> HttpResponse:
    """Choose a table, file or query. A POST reads a sample and redirects to its preview."""
    source = source_of(request.user, name)
    form = RowsForm(request.POST or None, source=source)
    context: dict[str, Any] = {"source": source, "form": form, "sample": SAMPLE_ROWS, "most": settings.MAX_SOURCE_ROWS}
    if request.method == "POST" and form.is_valid():
        try:
            rows = chosen_rows(request.user, form.cleaned_data | {"source": name})
            return redirect("sources:preview", datasets.stage_sample(owner=request.user, rows=rows).pk)
        except DataError as error:
            context |= {"error": str(error), "problems": error.problems}
        except (Busy, Conflict) as error:
            context |= {"error": str(error.detail)}
    try:
        listed = reader.tables(source)
        context |= {"tables": listed["names"], "more": listed["of"] - len(listed["names"])}
    except DataError as error:
        context.setdefault("error", str(error))
    except Busy as error:
        context.setdefault("error", str(error.detail))
    return render(request, "sources/rows.html", context)


@login_required
def sample_preview(request: HttpRequest, pk: Any) -> HttpResponse:
    """Show the preview of a sample, as for an upload. A POST with `confirm` queues the count."""
    upload = Upload.objects.exclude(origin={}).get_for(request, pk)
    try:
        rows = chosen_rows(request.user, upload.origin)
    except DataError as error:  # the settings have another source of this name by now
        messages.error(request, str(error))
        return redirect("sources:rows", upload.origin["source"])
    form = SettingsForm(
        request.POST if "depth" in request.POST else None, columns=list(upload.found["names"]), auto_id="count-%s"
    )

    def confirm(
        request: HttpRequest, upload: Upload, reading: ReadOptions, choice: ColumnChoice
    ) -> HttpResponse | dict[str, Any]:
        if not form.is_valid():
            return {"error": "Correct the settings of the count.", "problems": ()}
        try:
            job = actions.start_from_preview(
                upload, name=request.POST.get("name", ""), reading=reading, choice=choice, settings=form.settings()
            )
        except ParameterError as error:
            return {"error": str(error), "problems": ()}
        except DataError as error:
            return {"error": str(error), "problems": error.problems}
        except (Busy, Unprocessable, Conflict) as error:
            return {"error": str(error.detail), "problems": ()}
        return redirect("sources:count", job.pk)

    more = {
        "form": form,
        "source_rows": rows,
        "sample_files": SAMPLE_FILES,
        "most": settings.MAX_SOURCE_ROWS,
        "limit_seconds": settings.MAX_COUNT_SECONDS,
        "limit_megabytes": settings.MAX_TRAINING_MB,
    }
    return preview_page(request, upload, confirm, template="sources/preview.html", more=more)


def _count(request: HttpRequest, pk: Any) -> SourceCount:
    return SourceCount.objects.select_related("owner", "dataset").get_for(request, pk)


@login_required
@require_GET
def count_detail(request: HttpRequest, pk: Any) -> HttpResponse:
    return render(request, "sources/count.html", _context(_count(request, pk)))


@login_required
@require_GET
def count_live(request: HttpRequest, pk: Any) -> HttpResponse:
    """Return the live part of the page."""
    return render(request, "sources/_count.html", _context(_count(request, pk)))


@login_required
@require_POST
def count_cancel(request: HttpRequest, pk: Any) -> HttpResponse:
    job = _count(request, pk)
    with refusals_said(request):
        actions.cancel(job)
        messages.info(request, "Stopped." if job.is_finished else "Stopping.")
    return redirect("sources:count", job.pk)


def _context(job: SourceCount) -> dict[str, Any]:
    elapsed = None if job.started is None else ((job.finished or timezone.now()) - job.started).total_seconds()
    return {
        "job": job,
        "dataset": job.dataset if job.dataset is not None and job.dataset.deleted_at is None else None,
        "done": job.progress.get("rows") or 0,
        "total": job.progress.get("of") or 0,
        "elapsed": elapsed,
        "wait": wait_of(job),
        "words": chosen_words(job),
    }
