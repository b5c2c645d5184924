"""Show the panel of dossiers, and serve their files."""

from __future__ import annotations

import logging
import uuid

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST, require_safe
from rest_framework.exceptions import ValidationError

from octweb.core.attachments import as_file
from octweb.core.ownership import may_change
from octweb.core.problems import Conflict, flatten, problem
from octweb.dossier import actions, pdf, signing
from octweb.dossier.drafts import drafts_of
from octweb.dossier.folder import PDF
from octweb.dossier.keys import signing_key
from octweb.dossier.models import ModelDossier
from octweb.dossier.texts import BASIC, FURTHER, TEXTS
from octweb.jobs.waiting import wait_of
from octweb.registry.models import TreeModel

log = logging.getLogger(__name__)
UNUSABLE_KEY = (
    "This server cannot use its key for dossiers, so it shows none. Ask an administrator: the log of the server names the cause. "
    "Each dossier also holds the public key that signed it."
)


def _model(request: HttpRequest, pk: uuid.UUID) -> tuple[TreeModel, bool]:
    """Return a readable model, and whether the user may make its dossier."""
    model = (
        TreeModel.objects.readable_by(request.user).select_related("family", "owner", "dataset").filter(pk=pk).first()
    )
    if model is None:
        raise Http404("There is no model with this id, or it is not yours and not approved.")
    return model, may_change(request.user, model)


def _panel(request: HttpRequest, model: TreeModel, inside: bool, refusal: str = "", status: int = 200) -> HttpResponse:
    job = actions.latest(model) if inside else None
    dossier = actions.latest_dossier(model)
    written = actions.texts_of(model) if inside else {}
    is_written = job is not None and any(job.said.values())
    drafts = drafts_of(model) if inside and not is_written else {}
    texts = drafts | {name: text for name, text in written.items() if text}
    target = model.dataset.target if model.dataset else ""
    context = {
        "model": model,
        "inside": inside,
        "job": job,
        "made": dossier,
        "approved": actions.approval_dossier(model),
        "refusal": refusal,
        "wait": wait_of(job),
        "texts": [
            *((name, label, texts.get(name, "")) for name, (label, _) in BASIC.items()),
            (actions.ENDS, "What would end the approval", texts.get(actions.ENDS, "")),
        ],
        "further": [(name, label, words, texts.get(name, "")) for name, (label, words) in FURTHER.items()],
        "columns": [c["name"] for c in model.dataset.columns if c["name"] != target]
        if inside and model.dataset and not model.dataset.counts
        else [],
        "groups": job.groups if job is not None else [],
        "is_drafted": bool(drafts),
        "has_pdf": dossier is not None and PDF in dossier.summary.get("files", []),
        "no_pdf": pdf.MISSING,
    }
    return render(request, "dossier/_panel.html", context, status=status)


@login_required
@require_safe
def page(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Redirect to the dossier on the model's page."""
    model, _ = _model(request, pk)
    return redirect(f"{reverse('registry:detail', args=[model.pk])}?mode=proof#dossier")


@login_required
@require_GET
def panel(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Show the last dossier and the form for the next one."""
    return _panel(request, *_model(request, pk))


@login_required
@require_POST
def start(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Store the texts and queue a dossier. The panel shows its progress."""
    model, inside = _model(request, pk)
    if not inside:
        raise Http404("There is no model with this id, or it is not yours.")
    texts = {name: request.POST.get(name, "") for name in (*TEXTS, actions.ENDS)}
    refusal = ""
    try:
        site = request.build_absolute_uri("/")
        actions.start(by=request.user, model=model, said=texts, groups=request.POST.getlist("groups"), site=site)
    except (ValidationError, Conflict) as error:
        refusal = "; ".join(e["detail"] for e in flatten(error.detail))
    except PermissionDenied as error:
        refusal = str(error)
    if not request.headers.get("HX-Request"):
        return redirect("dossier:page", model.pk)
    return _panel(request, model, inside, refusal)


@login_required
@require_GET
def file(request: HttpRequest, pk: uuid.UUID, form: str) -> HttpResponse:
    """Return the dossier in one of FORMATS. HTML opens in the browser, and other formats are downloads."""
    model, _ = _model(request, pk)
    job = actions.approval_dossier(model) if request.GET.get("of") == "approval" else actions.latest_dossier(model)
    if form not in actions.FORMATS or job is None:
        raise Http404("There is no dossier of this model in this form.")
    return answer(job, model, form, actions.content(job, form, by=request.user))


def answer(job: ModelDossier, model: TreeModel, form: str, content: bytes) -> HttpResponse:
    """Return a file of a dossier as a response."""
    response = HttpResponse(content, content_type=actions.FORMATS[form][1])
    if form != "html":  # the browser shows the HTML document instead of saving it
        as_file(response, f"{model.family.name}-{model.version}-dossier.{form}")
    response["X-Content-SHA256"] = model.sha256
    if job.sha256:
        response["X-Dossier-SHA256"] = job.sha256
    if job.finished is not None:
        response["Last-Modified"] = job.finished.strftime("%a, %d %b %Y %H:%M:%S GMT")
    return response


@require_safe
def public_key(request: HttpRequest) -> HttpResponse:
    """Return the public key of this installation, for everyone."""
    try:
        key = signing_key().public_key()
    except signing.BadKey as error:
        # the message names a file of this host, so only the log, for administrators, contains it
        log.error("The key that signs dossiers cannot be used: %s", error)
        return problem(503, UNUSABLE_KEY)
    response = HttpResponse(signing.pem_of(key), content_type="text/plain; charset=utf-8")
    response["X-Key-SHA256"] = signing.fingerprint(key)
    return response
