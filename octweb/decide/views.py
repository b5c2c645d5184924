"""Show pages of decisions and questionnaires."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from rest_framework.exceptions import ValidationError

from octweb.core.attachments import as_file
from octweb.core.problems import Conflict, flatten
from octweb.decide import actions
from octweb.decide.asked import asked_of
from octweb.decide.facts import decision
from octweb.decide.page import context
from octweb.decide.payload import payload
from octweb.decide.wording import ANSWERS, MAX_TEXT_CHARACTERS, is_locked, questions_of, write_words
from octweb.registry.models import TreeModel
from octweb.registry.page.views import scene_of


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def decision_page(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Explain one decision. Typed values come by POST, so that no URL, history or log contains them."""
    scene = scene_of(request, pk)
    form = request.POST if request.method == "POST" else _address(request.GET)
    decision_request = asked_of(scene, form, actions.marks_of(scene.model))
    if form.get("format") == "json":
        return _json(scene, decision_request)
    return render(request, "decide/decision.html", context(scene, decision_request))


def _address(query: QueryDict) -> QueryDict:
    """Return the parameters that are allowed in a URL: row, format, wanted class and order, but no values."""
    address = QueryDict(mutable=True)
    address.update({name: query[name] for name in ("line", "row", "format", "wanted", "least") if name in query})
    return address


def _json(scene: Any, decision_request: Any) -> JsonResponse:
    if decision_request.row is None:
        return JsonResponse({"detail": decision_request.trouble}, status=422)
    answer = JsonResponse(decision(scene, decision_request), json_dumps_params={"ensure_ascii": False, "indent": 1})
    return as_file(answer, f"{scene.model.family.name}-{scene.model.version}-decision.json")


@login_required
@require_safe
def questionnaire(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Show the tree as a questionnaire. The answers stay in the browser."""
    scene = scene_of(request, pk)
    unseen = [scene.unseen_of(v) for v in scene.tree.nodes] if scene.rows is not None else None
    context = {"model": scene.model, "payload": payload(scene.model, inside=scene.inside, unseen=unseen)}
    return render(request, "decide/questionnaire.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def reasons(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Show and store the owner's texts for the answers of the tree.

    404 unless the user owns it or is an administrator.
    """
    model = TreeModel.objects.select_related("family", "owner").get_for(request, pk)
    trouble: list[str] = []
    questions = questions_of(model)
    contact = actions.guidance_of(model).contact
    if request.method == "POST":
        contact = request.POST.get("contact", "")
        for question in questions:
            typed = {a: request.POST.get(f"{a}-{question['nodes'][0]}") for a in ANSWERS}
            question.update({a: text.replace("\r\n", "\n") for a, text in typed.items() if text is not None})
        try:
            with transaction.atomic():
                write_words(model, by=request.user, texts=[q | {"node": q["nodes"][0]} for q in questions])
                actions.set_contact(model, by=request.user, contact=contact)
        except (Conflict, ValidationError) as error:
            trouble = [e["detail"] for e in flatten(error.detail)]
        else:
            messages.success(request, "Kept. Letters and pages give reasons in these words.")
            return redirect("decide:reasons", model.pk)
    context = {
        "model": model,
        "questions": questions,
        "contact": contact,
        "trouble": trouble,
        "max_words": MAX_TEXT_CHARACTERS,
        "max_contact": actions.MAX_CONTACT,
        "locked": is_locked(model.state, request.user),
    }
    return render(request, "decide/reasons.html", context)


@login_required
@require_POST
def keep_marks(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Store the permitted changes as the default for all users of the model.

    404 unless the user owns it or is an administrator.
    """
    scene = scene_of(request, pk)
    change = dict(asked_of(scene, request.POST, {}).change)
    try:
        actions.mark(scene.model, by=request.user, change=change)
    except PermissionDenied as error:
        raise Http404("This is for the owner of the model.") from error
    except ValidationError as error:
        messages.error(request, "; ".join(e["detail"] for e in flatten(error.detail)))
    else:
        messages.success(request, "Kept: what may change is now the default for this model.")
    return redirect("decide:decision", scene.model.pk)
