"""Show the review of a model, and carry out its steps."""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST
from rest_framework.exceptions import APIException

from octweb.core.problems import flatten
from octweb.registry import hooks
from octweb.registry.document.claims import claim_badges, claim_of
from octweb.registry.document.model_files import model_file
from octweb.registry.document.rows import absence_words, check_claim
from octweb.registry.document.selection import selection_of
from octweb.registry.lifecycle import actions
from octweb.registry.models import Family, Recording, ShareLevel, State, TreeModel
from octweb.registry.page import content, performance
from octweb.registry.page.scene import ModelScene
from octweb.registry.review.checklist import ReviewedModel, answers_of, build_checklist, purpose_of
from trainer.training.unseen import unseen_words
from trainer.tree.render.outline import tree_outline

# verb of the page → key of `actions.STEPS`, and further arguments
STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "approve": ("approve", {"publish": False}),
    "approve-only": ("approve", {"publish": False}),
    "approve-and-serve": ("approve", {"publish": True}),
}


def _model(request: HttpRequest, pk: uuid.UUID) -> TreeModel:
    """Return the model for its owner, its team and administrators. Raises Http404 for others."""
    return TreeModel.objects.select_related("family", "owner", "dataset").get_visible(request.user, pk)


def _model_to_change(request: HttpRequest, pk: uuid.UUID) -> TreeModel:
    """Return the model for users who may change it. Raises Http404, and PermissionDenied for others of its team."""
    return TreeModel.objects.select_related("family", "owner", "dataset").get_changeable(request.user, pk)


@login_required
@require_GET
def review_page(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Show the page of the review."""
    return _render_review(request, _model(request, pk))


def _render_review(
    request: HttpRequest, model: TreeModel, *, refused: str = "", at: str = "", status: int = 200
) -> HttpResponse:
    """Render the page of the review. A refusal is shown at the form `at`, with the values as typed."""
    reviewed = ReviewedModel(model)
    possible = actions.possible_steps(model, request.user)
    events = reviewed.events
    items = build_checklist(reviewed)
    file = model_file(model)
    scene = ModelScene(model=model, user=request.user, inside=False)
    context = {
        "model": model,
        "served": reviewed.served,
        "without": actions.next_served_version(model),
        "difference": reviewed.difference,
        "items": items,
        "open_items": sum(item.state == "open" for item in items),
        "is_pending": any(item.pending for item in items),
        "first_approvals": actions.approvals(model),
        "recordings": Recording.choices,
        "site_days": settings.RECORD_KEEP_DAYS,
        "max_days": actions.MAX_KEEP_DAYS,
        "two_approvals": settings.APPROVALS > 1,
        "claims": claim_badges(model),
        "claim": claim_of(model),
        "facts": content.facts(model),
        "interval": performance.unseen_interval(scene),
        "unseen_about": unseen_words(file),
        "base_rate": performance.unseen_base_rate(scene),
        "selection": selection_of(model),
        "mistakes": performance.mistakes(scene, performance.chosen_part(scene)),
        "checked": check_claim(model),
        "absence": absence_words(model),
        "fingerprint": file.fingerprint,
        "certificate": file.certificate,
        "outline": tree_outline(file.tree),
        "wording": [q for q in hooks.wording(model) if q["yes"] or q["no"]],
        "events": events,
        "purpose": purpose_of(events),
        "answers": answers_of(events),
        "last": events[-1] if events else None,
        "asked_back": actions.return_step(events[-1] if events else None, model),
        "possible": possible,
        "decides": not {"approve", "return", "reject"}.isdisjoint(possible),
        "own": model.owner_id == request.user.pk,
        "four_eyes": actions.needs_four_eyes(),
        "levels": ShareLevel.choices,
        "shares": model.shares.select_related("user"),
        "can_delete": model.state not in (State.APPROVED, State.IN_REVIEW),
        "names": Family.objects.filter(owner=model.owner).exclude(pk=model.family_id).order_by("name")[:100],
        "refused": {at: refused} if refused else {},
        "typed": request.POST,
    }
    return render(request, "registry/review.html", context, status=status)


@login_required
@require_GET
def review_list(request: HttpRequest) -> HttpResponse:
    """List the models in review: all for administrators, otherwise those of the user and of the user's teams."""
    waiting = TreeModel.objects.visible_to(request.user).filter(state=State.IN_REVIEW).defer("document")
    return render(request, "registry/waiting.html", {"waiting": waiting.select_related("family", "owner")[:200]})


@login_required
@require_POST
def review_step(request: HttpRequest, pk: uuid.UUID, verb: str) -> HttpResponse:
    """Take a step of the review, from its page or the model's page."""
    model = _model(request, pk)
    name, more = STEPS.get(verb, (verb, {}))
    if name == "approve" and request.POST.get("recording") in Recording.values:
        days = request.POST.get("keep_days", "").strip()
        more = more | {"recording": request.POST["recording"], "keep_days": int(days) if days.isdecimal() else None}
    if name not in actions.STEPS:
        raise Http404("There is no such step.")
    reason = request.POST.get("reason", "")[:5000]
    outcome = actions.TRANSITIONS[name][2] + (" and served" if more.get("publish") else "")
    return _take_step(
        request, model, lambda: actions.STEPS[name](model, by=request.user, reason=reason, **more), outcome, at="decide"
    )


@login_required
@require_POST
def review_publish(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Serve an approved model under its name, or under another or new name of its owner."""
    model = _model_to_change(request, pk)
    name = request.POST.get("name", "")[:90]
    return _take_step(request, model, lambda: actions.publish(model, by=request.user, name=name), "served", at="serve")


@login_required
@require_POST
def review_stop_serving(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Stop serving a model. It stays approved."""
    model = _model_to_change(request, pk)
    reason = request.POST.get("reason", "")[:5000]
    return _take_step(
        request,
        model,
        lambda: actions.stop_serving(model, by=request.user, reason=reason),
        "no longer served",
        at="serve",
    )


@login_required
@require_POST
def share_with(request: HttpRequest, pk: uuid.UUID) -> HttpResponse:
    """Share the model with a user, or remove a share (`remove`)."""
    model = _model_to_change(request, pk)
    name = request.POST.get("username", "")[:150]
    remove = request.POST.get("remove", "")[:150]
    if remove:
        return _take_step(
            request,
            model,
            lambda: actions.unshare(model, by=request.user, username=remove),
            f"no longer shared with {remove}",
            at="share",
        )
    level = request.POST.get("level", ShareLevel.READ)
    return _take_step(
        request,
        model,
        lambda: actions.share(model, by=request.user, username=name, level=level, records="records" in request.POST),
        f"shared with {name}",
        at="share",
    )


def _take_step(request: HttpRequest, model: TreeModel, step: Any, outcome: str, *, at: str) -> HttpResponse:
    """Take a step, and redirect to the page from which it came.

    A refusal becomes a message there or, on the review page, an error at its form.
    """
    from_review = request.POST.get("back") == "review"
    refused = ""
    status = 200
    try:
        messages.success(request, f"{model.title}: {actions.describe_outcome(step(), outcome)}.")
    except PermissionDenied as error:
        refused = str(error)
        status = 403
    except APIException as error:
        refused = "; ".join(e["detail"] for e in flatten(error.detail))
    if refused and from_review:
        return _render_review(request, _model(request, model.pk), refused=refused, at=at, status=status)
    if refused:
        messages.error(request, refused)
    return redirect("registry:review-page" if from_review else "registry:detail", model.pk)
