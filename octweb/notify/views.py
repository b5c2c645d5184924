"""Show a user's notification preferences and latest messages."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods
from rest_framework.exceptions import APIException

from octweb.demo.visits import refuse
from octweb.jobs.queue import worker_seen
from octweb.notify.delivery import MAX_FAILURES, queue_test
from octweb.notify.models import Delivery, Wish
from octweb.notify.webhook import Undelivered, parse_address

TEST = {"event": "test", "id": "", "name": "A test", "status": "sent", "words": "sent"}
MAX_SHOWN = 10


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def wishes(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    wish = Wish.objects.filter(user=user).first() or Wish(user=user)
    error = ""
    if request.method == "POST":
        refuse(user, "Messages by mail or webhook")
        # the form shows the input again, even if it is refused
        wish.webhook = request.POST.get("webhook", "").strip()[:500]
        wish.email = "email" in request.POST
        try:
            if wish.webhook:
                parse_address(wish.webhook)
            wish.failures = 0
            wish.trouble = ""
            wish.save()
            messages.success(request, "Kept.")
            if "test" in request.POST:
                _test(request, user)
            return redirect("notify")
        except Undelivered as refusal:
            error = str(refusal)
    deliveries = list(Delivery.objects.filter(owner=user)[:MAX_SHOWN])
    context = {
        "wish": wish,
        "error": error,
        "mail": bool(settings.EMAIL_HOST),
        "address": settings.ADDRESS,
        "ended": wish.failures >= MAX_FAILURES,
        "deliveries": deliveries,
        "testing": any(delivery.is_test and delivery.is_waiting for delivery in deliveries),
        "worker_seen": worker_seen(),
    }
    name = "notify/_deliveries.html" if request.headers.get("HX-Request") else "notify/wishes.html"
    return render(request, name, context)


def _test(request: HttpRequest, user: Any) -> None:
    """Queue a test for each channel that the user chose. The page shows the result below the form."""
    try:
        sent = queue_test(user, TEST)
    except APIException as error:
        messages.warning(request, str(error.detail))
        return
    if sent:
        messages.info(request, "A test is on its way. Its result is shown below.")
    else:
        messages.info(request, "Nothing was sent: choose e-mail or an address.")
