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
from octweb.notify.news import MOST_FAILURES, by_mail, deliver, mail
from octweb.notify.webhook import Undelivered, checked

TEST = {"event": "test", "id": "", "name": "A test", "status": "sent", "words": "sent"}


@login_required
def wishes(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    wish = Wish.objects.filter(user=user).first() or Wish(user=user)
    error = ""
    if request.method == "POST":
        refuse(user, "Messages by mail or webhook")
        # what is typed stays in the field, also if it is refused
        wish.webhook = request.POST.get("webhook", "").strip()[:500]
        wish.email = "email" in request.POST
        try:
            if wish.webhook:
                checked(wish.webhook)
            wish.failures, wish.trouble = 0, ""
            wish.save()
            messages.success(request, "Kept.")
            if "test" in request.POST:
                _test(request, wish)
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
    """A message in each of the ways that the user wishes, and how it went."""
    if wish.webhook:
        if deliver(wish, TEST):
            messages.success(request, "The test arrived at the address.")
        else:
            wish.refresh_from_db()
            messages.warning(request, f"The test did not arrive. {wish.trouble}")
    if by_mail(wish):
        if mail(wish.user, TEST):
            messages.success(request, f"A test was sent to {wish.user.email}.")
        else:
            messages.warning(request, "The test could not be sent by e-mail. The log of the server says why.")
    if not wish.webhook and not by_mail(wish):
        messages.info(request, "Nothing was sent: choose e-mail or an address.")
