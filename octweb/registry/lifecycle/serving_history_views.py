"""Show which versions were served under a name, and when."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET
from rest_framework.exceptions import ValidationError

from octweb.registry.lifecycle.serving_history import approver_of, parse_moment_or_now, period_at, served_periods
from octweb.registry.models import TreeModel


@login_required
@require_GET
def served_when(request: HttpRequest, name: str) -> HttpResponse:
    """Show the periods of a name, and the version served at the moment in the query.

    404 if the name was never served.
    """
    periods = served_periods(name)
    if not periods:
        raise Http404("No version was ever served under this name.")
    typed = request.GET.get("at", "")[:60]
    context = {"name": name, "periods": periods[::-1], "typed": typed}
    try:
        moment = parse_moment_or_now(typed)
        period = period_at(periods, moment)
        context |= {"moment": moment, "period": period, "approver": approver_of(period) if period is not None else ""}
        context["typed"] = timezone.localtime(moment).strftime("%Y-%m-%dT%H:%M") if typed else ""
    except ValidationError as error:
        context["refused"] = str(error.detail["at"])
    readable = TreeModel.objects.visible_to(request.user).filter(pk__in=[p.model for p in periods], deleted_at=None)
    context["readable"] = set(readable.values_list("pk", flat=True))
    return render(request, "registry/served_when.html", context, status=400 if "refused" in context else 200)
