"""Show the page about the API: tokens, example calls, errors and limits."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from octweb.core.forms import SaidForm
from octweb.core.problems import Conflict, Unprocessable
from octweb.registry.document.rows import example_row
from octweb.registry.lifecycle.access import may_see_rows
from octweb.registry.models import TreeModel
from octweb.registry.page import snippets
from octweb.registry.prediction.predictions import predict_rows
from octweb.serving import actions
from octweb.serving.models import ApiToken, Scope
from trainer.errors import TrainerError

ERRORS = (
    ("400", "The body is not JSON of the right form.", 'Send {"rows": [{column: value}]}.'),
    ("401", "No token, or a token that is unknown, revoked or expired.", "Make a new one on this page."),
    ("403", "The token may only predict, or the step is for administrators.", "Use a token for everything."),
    ("404", "There is no such object, or it is not yours and not approved.", "Check the id."),
    ("409", "The object is in a state in which this cannot be done.", "Read it again first."),
    ("413", "Too many rows or bytes.", "Send the rows in several calls."),
    ("415", "The body is of another type.", "Send Content-Type: application/json."),
    ("422", "A row cannot be predicted; the answer names row and column.", "Correct the row."),
    ("429", "Too many calls with this token.", "Wait as long as the header Retry-After says."),
)


class TokenForm(SaidForm):
    """Form of a new token."""

    name = forms.CharField(
        max_length=100, required=False, label="Name", help_text="where it is used, so that you recognise it"
    )
    scope = forms.ChoiceField(choices=Scope.choices, initial=Scope.PREDICT, label="It may be used for")
    days = forms.IntegerField(
        min_value=1,
        max_value=actions.MAX_DAYS,
        required=False,
        initial=90,
        label="Days until it expires",
        help_text="empty: never",
    )


@login_required
@never_cache
def guide(request: HttpRequest) -> HttpResponse:
    """Render the page. POST creates a token, whose secret only this response shows."""
    form = TokenForm(request.POST or None)
    secret = ""
    if request.method == "POST" and form.is_valid():
        try:
            _, secret = actions.create_token(owner=request.user, **form.cleaned_data)
            form = TokenForm()
        except (Conflict, Unprocessable) as error:
            form.add_error(None, str(error.detail))
    context = {
        "form": form,
        "secret": secret,
        "tokens": ApiToken.objects.filter(user=request.user),
        "now": timezone.now(),
        "errors": ERRORS,
        "max_rows": settings.MAX_PREDICT_ROWS,
        "max_megabytes": settings.MAX_PREDICT_BYTES // 10**6,
        "rate": settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]["user"],
        **_example(request),
    }
    return render(request, "serving/guide.html", context)


@login_required
@require_POST
def revoke_all(request: HttpRequest) -> HttpResponse:
    """Revoke all tokens of the user and end all sessions except this one."""
    user: Any = request.user
    count = actions.revoke_all_tokens(user)
    ended = actions.end_other_sessions(user, kept=request.session.session_key)
    messages.success(request, f"Signed out everywhere else: {count} tokens and {ended} other sessions were ended.")
    return redirect("serving:guide")


@login_required
@require_POST
def revoke(request: HttpRequest, key: str) -> HttpResponse:
    actions.revoke_token(get_object_or_404(ApiToken, user=request.user, token_key=key))
    messages.success(request, "The token was revoked; calls with it fail from now on.")
    return redirect("serving:guide")


def _example(request: HttpRequest) -> dict[str, Any]:
    """Return example calls of a model, with an example row and its answer.

    The model is one of the user's or else an approved one. Return {} if the user may call no such model.
    """
    user: Any = request.user
    models = TreeModel.objects.callable_by(user).select_related("family", "dataset")
    model = models.filter(owner=user).first() or models.approved().first()
    if model is None:
        return {}
    inside = may_see_rows(user, model)
    row = example_row(model, inside=inside)
    url = request.build_absolute_uri(reverse("api-model-predict", args=[model.pk]))
    try:
        answer = predict_rows(model, [row]).records()[0]
    except TrainerError:
        answer = None
    return {
        "model": model,
        "curl": snippets.curl(url, row),
        "python": snippets.python(url, row),
        "answer": None if answer is None else json.dumps(answer, ensure_ascii=False, indent=1),
        "v2": request.build_absolute_uri(f"/v2/models/{model.family.name}/infer"),
    }
