"""Begin and end a visit by POST, so that crawlers create no accounts."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import auth, messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from octweb.core.throttles import client_address
from octweb.core.views import too_many
from octweb.demo import actions
from octweb.demo.visits import visit_of

BACKEND = "django.contrib.auth.backends.ModelBackend"


@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    """Create a one-day account and sign the visitor in. Signed-in users are redirected home."""
    if not settings.DEMO:
        raise Http404("This server has no demo.")
    if request.user.is_authenticated:
        return redirect("home")
    try:
        visit = actions.begin(address=client_address(request))
    except actions.DemoFull as full:
        return too_many(request, str(full), seconds=3600)
    user: Any = visit.user
    auth.login(request, user, backend=BACKEND)
    request.session.set_expiry(visit.until)
    request.session.save()
    visit.session = request.session.session_key or ""
    visit.save(update_fields=["session"])
    return redirect("home")


@require_POST
def end(request: HttpRequest) -> HttpResponse:
    """Delete the visitor's account and all its objects."""
    visit = visit_of(request.user)
    if visit is None:
        raise Http404("You have no demo.")
    ended = actions.end(visit)
    auth.logout(request)
    if ended:
        messages.success(request, "Your demo is over. The account and everything in it were deleted.")
    else:
        messages.info(request, "Your demo is over. The rest of it is deleted within a day.")
    return redirect("home")
