"""Show the page that imports the tree of another program."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from rest_framework.exceptions import APIException

from octweb.datasets.models import Dataset
from octweb.registry.lifecycle.importing import FORMS, MAX_FILE_BYTES, import_tree
from trainer.errors import DataError, TrainerError


@login_required
def model_bring(request: HttpRequest) -> HttpResponse:
    """Show the form. A POST imports a tree as a draft, or shows the form with errors."""
    datasets = Dataset.objects.changeable_by(request.user).order_by("-created")
    context: dict[str, Any] = {
        "datasets": datasets[:500],
        "limit": MAX_FILE_BYTES // 10**6,
        "forms": FORMS,
        "chosen": request.POST.get("dataset") or request.GET.get("dataset", ""),
        "title": request.POST.get("title", ""),
        "classes": request.POST.get("classes", ""),
        "form": request.POST.get("form", ""),
    }
    if request.method != "POST":
        return render(request, "registry/bring.html", context)
    try:
        model = import_tree(
            owner=request.user,
            file=_file(request),
            source_name=request.FILES["file"].name or "model",
            dataset=_dataset(datasets, context["chosen"]),
            title=context["title"],
            classes=context["classes"],
            form=context["form"] if context["form"] in FORMS else "",
        )
        messages.success(
            request,
            f"{model.title} is a draft, counted on {model.dataset.name}; nothing is claimed about it. "
            "Proof & dossier can search for a better tree of its size.",
        )
        return redirect("registry:detail", model.pk)
    except DataError as error:
        context |= {"error": str(error), "problems": error.problems}
    except TrainerError as error:
        context |= {"error": str(error), "problems": ()}
    except APIException as error:
        context |= {"error": str(error.detail), "problems": ()}
    return render(request, "registry/bring.html", context)


def _file(request: HttpRequest) -> Any:
    if "file" not in request.FILES:
        raise DataError("Choose a file first.")
    return request.FILES["file"]


def _dataset(datasets: Any, chosen: str) -> Dataset:
    try:
        dataset = datasets.filter(pk=uuid.UUID(chosen)).first()
    except ValueError:
        dataset = None
    if dataset is None:
        raise DataError("Choose one of your data sets. Its rows are counted in each leaf of the tree.")
    return dataset
