"""Show batch predictions: list, upload form and live page."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Case, QuerySet, When
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST
from rest_framework.exceptions import ValidationError

from octweb.batch import actions
from octweb.batch.files import result_file
from octweb.batch.models import BatchPrediction, Format
from octweb.core.forms import SaidForm
from octweb.core.lists import narrowed, page_of
from octweb.core.parsers import BodyTooLarge
from octweb.core.problems import Conflict, flatten
from octweb.core.refusals import refusals_said
from octweb.jobs.waiting import wait_of
from octweb.registry.document.model_files import model_file
from octweb.registry.models import State, TreeModel
from trainer.errors import DataError, ParameterError
from trainer.explain.least import COLUMNS, ORDERS
from trainer.explain.permission import split_argument
from trainer.explain.statistics import split_cost

MOST_MODELS = 12  # at most this many models are offered on the list page
LIST_SORTS = {
    "newest": ("newest first", "-created"),
    "oldest": ("oldest first", "created"),
    "name": ("file", "source_name"),
    "model": ("model", "model__title"),
    "status": ("status", "status"),
}


class UploadForm(SaidForm):
    """Form of a new batch prediction: model, file and options."""

    model = forms.ModelChoiceField(queryset=TreeModel.objects.none(), label="Model", empty_label=None)
    file = forms.FileField(
        label="File",
        allow_empty_file=True,
        help_text="CSV (also .gz), .xlsx, Parquet or Arrow, with a header line if the training file had one",
    )
    sheet = forms.CharField(
        required=False,
        max_length=200,
        label="Sheet",
        help_text="of an .xlsx file; the sheet of the training or the first visible one if left empty",
    )
    no_header = forms.BooleanField(
        required=False, label="The first line is data", help_text="for models whose training file had no header line"
    )
    format = forms.ChoiceField(choices=Format.choices, initial=Format.CSV, label="Answers as")
    keep_columns = forms.BooleanField(
        required=False,
        initial=True,
        label="Keep the columns of the file",
        help_text="all of them, as they are, before the answers",
    )
    explain = forms.BooleanField(
        required=False,
        label="Explain each row",
        help_text="adds the path and the smallest change that gives another answer; takes some milliseconds per row",
    )

    change = forms.CharField(
        required=False,
        label="What may change",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="with explanations; a line for each column: age=never, debt=down, town=north|south. Others are as the owner of the model says",
    )
    cost = forms.CharField(
        required=False,
        label="What a change of 1 costs",
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="with explanations; a line for each column: income=0.01. Others are measured in the unit of their column",
    )

    least = forms.ChoiceField(
        choices=ORDERS,
        initial=COLUMNS,
        required=False,
        label="Smallest change",
        help_text="with explanations; the total is the sum of all changes, each by its cost or in its unit",
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        model = values.get("model")
        schema = model_file(model).tree.schema if model else ()
        for name, split in (("change", lambda line: split_argument(line, schema)), ("cost", split_cost)):
            try:
                values[name] = dict(split(line.strip()) for line in values.get(name, "").splitlines() if line.strip())
            except ParameterError as error:
                self.add_error(name, str(error))
        return values

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        models = TreeModel.objects.callable_by(user).defer("document").select_related("family")
        self.fields["model"].queryset = models
        self.fields["file"].widget.attrs["accept"] = ".csv,.gz,.tsv,.txt,.xlsx,.parquet,.arrow,.feather"


def _job(request: HttpRequest, pk: Any) -> BatchPrediction:
    jobs = BatchPrediction.objects.select_related("owner", "model__family").defer("model__document")
    return jobs.get_for(request, pk)


@login_required
@require_GET
def job_list(request: HttpRequest) -> HttpResponse:
    jobs = BatchPrediction.objects.visible_to(request.user).select_related("owner", "model__family")
    fields = ("source_name", "model__title", "model__family__name")
    jobs, list_context = narrowed(jobs.defer("model__document"), request.GET, fields=fields, sorts=LIST_SORTS)
    page = page_of(jobs, request.GET)
    return render(request, "batch/list.html", list_context | {"page": page, "models": _models_to_ask(request)})


def _models_to_ask(request: HttpRequest) -> QuerySet:
    """Return the models that the user may call, approved ones first, then the newest."""
    models = TreeModel.objects.callable_by(request.user).exclude(state__in=(State.REJECTED, State.RETIRED))
    approved_first = Case(When(state=State.APPROVED, then=0), default=1)
    return models.select_related("family").defer("document").order_by(approved_first, "-created")[:MOST_MODELS]


@login_required
def new(request: HttpRequest) -> HttpResponse:
    """Show the form. After a valid upload, queue the job and redirect to its page."""
    chosen = request.POST.get("model") or request.GET.get("model")
    form = UploadForm(
        request.POST or None, request.FILES or None, user=request.user, initial={"model": chosen} if chosen else None
    )
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            job = actions.enqueue(
                owner=request.user,
                model=values["model"],
                file=values["file"],
                source_name=values["file"].name or "rows.csv",
                options=actions.BatchOptions(
                    format=values["format"],
                    sheet=values["sheet"],
                    header=not values["no_header"],
                    keep_columns=values["keep_columns"],
                    explain=values["explain"],
                    change=values["change"],
                    cost=values["cost"],
                    least=values["least"] or COLUMNS,
                ),
            )
            return redirect("batch:detail", job.pk)
        except ValidationError as error:
            for problem in flatten(error.detail):
                name = problem["attr"]
                form.add_error(name if name in form.fields else None, problem["detail"])
        except DataError as error:
            form.add_error("file", str(error))
        except BodyTooLarge as error:
            form.add_error("file", str(error.detail))
        except Conflict as error:
            form.add_error(None, str(error.detail))
    model = _get_batch(request, chosen)
    context = {
        "form": form,
        "model": model,
        "columns": _columns(model) if model else [],
        "limit": settings.MAX_UPLOAD_BYTES // 10**6,
        "max_rows": settings.MAX_ROWS,
        "days": settings.KEEP_PREDICTIONS_DAYS,
    }
    return render(request, "batch/new.html", context)


@login_required
@require_GET
def detail(request: HttpRequest, pk: Any) -> HttpResponse:
    return render(request, "batch/detail.html", _context(_job(request, pk)))


@login_required
@require_GET
def live(request: HttpRequest, pk: Any) -> HttpResponse:
    """Return the live part of the page."""
    return render(request, "batch/_live.html", _context(_job(request, pk)))


@login_required
@require_GET
def result(request: HttpRequest, pk: Any) -> HttpResponse | FileResponse:
    job = _job(request, pk)
    with refusals_said(request):
        return result_file(job)
    return redirect("batch:detail", job.pk)


@login_required
@require_POST
def cancel(request: HttpRequest, pk: Any) -> HttpResponse:
    job = _job(request, pk)
    with refusals_said(request):
        actions.cancel(job)
        messages.info(request, "Stopped." if job.is_finished else "Stopping.")
    return redirect("batch:detail", job.pk)


def _get_batch(request: HttpRequest, pk: Any) -> TreeModel | None:
    models = TreeModel.objects.callable_by(request.user).select_related("family")
    if not pk:
        return None
    try:
        return models.filter(pk=pk).first()
    except (ValueError, forms.ValidationError) as error:
        raise Http404("There is no model with this id, or it is not yours and not approved.") from error


def _columns(model: TreeModel) -> list[str]:
    """Return the names of the columns that the tree needs."""
    tree = model_file(model).tree
    return [tree.schema[j].name for j in tree.used_columns]


def _context(job: BatchPrediction) -> dict[str, Any]:
    rows_done = job.progress.get("rows") or 0
    total = job.progress.get("of") or 0
    elapsed = None if job.started is None else ((job.finished or timezone.now()) - job.started).total_seconds()
    return {
        "job": job,
        "done": rows_done,
        "total": total,
        "elapsed": elapsed,
        "wait": wait_of(job),
        "labels": (job.summary.get("labels") or {}).items(),
        "problems": job.summary.get("problems") or [],
    }
