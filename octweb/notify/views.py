"""The page on which a user chooses how to be told about runs that have ended."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from octweb.demo.visits import refuse
from octweb.notify.models import Wish
from octweb.notify.news import MOST_FAILURES, deliver
from octweb.notify.webhook import Undelivered, checked


@login_required
def wishes(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    wish = Wish.objects.filter(user=user).first() or Wish(user=user)
    error = ""
    if request.method == "POST":
        refuse(user, "Messages by mail or webhook")
        url = request.POST.get("webhook", "").strip()[:500]
        wish.email = "email" in request.POST
        try:
            if url:
                checked(url)
            if url != wish.webhook:
                wish.failures, wish.trouble = 0, ""
            wish.webhook = url
            wish.save()
            if "test" in request.POST and url:
                _test(request, wish)
            else:
                messages.success(request, "Kept.")
            return redirect("notify")
        except Undelivered as refusal:
            error = str(refusal)
    context = {
        "wish": wish,
        "error": error,
        "mail": bool(settings.EMAIL_HOST),
        "address": settings.ADDRESS,
        "ended": wish.failures >= MOST_FAILURES,
    }
    return render(request, "notify/wishes.html", context)


def _test(request: HttpRequest, wish: Wish) -> None:
    arrived = deliver(wish, {"event": "test", "id": "", "name": "A test", "status": "sent", "words": "sent"})
    wish.refresh_from_db()
    if arrived:
        messages.success(request, "The test arrived.")
    else:
        messages.warning(request, f"The test did not arrive. {wish.trouble}")
