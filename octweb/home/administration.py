"""Show administrators the people, the queue and the health of the installation."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.views.decorators.http import require_http_methods

from octweb.core import unavailable
from octweb.core.lists import page_of, with_words
from octweb.core.problems import Conflict, Unprocessable
from octweb.core.refusals import refusals_said
from octweb.core.roles import ROLES, role_of
from octweb.jobs.models import RunStatus
from octweb.jobs.queue import cancel, job_models, workers_seen

GIGABYTE = 1e9
MOST_JOBS = 50  # rows of the queue on the page
ACTIVE = (RunStatus.RUNNING, RunStatus.QUEUED)
DAY = timedelta(days=1)


@login_required
@require_http_methods(["GET", "POST"])
def administration(request: HttpRequest) -> HttpResponse:
    """Show people, queue and health to staff. A POST changes an account or stops a job."""
    if not request.user.is_staff:
        raise PermissionDenied("Only reviewers and administrators can see this page.")
    link = ""
    if request.method == "POST":
        change = CHANGES.get(request.POST.get("do", ""))
        if change is None:
            raise Http404
        with refusals_said(request):
            link = change(request)
        if not link:
            return redirect("administration")
    words = request.GET.get("q", "").replace("\x00", "").strip()[:200]
    users = with_words(get_user_model().objects.filter(visit=None), words, ("username", "email")).order_by("username")
    page = page_of(users, request.GET)
    context = {
        "page": page,
        "people": [(user, role_of(user)) for user in page],
        "words": words,
        "roles": ROLES.items(),
        "manages": request.user.is_superuser,
        "link": link,
        "link_days": settings.PASSWORD_RESET_TIMEOUT // 86_400,
        "health": _health(),
        **_queue(),
    }
    return render(request, "home/administration.html", context)


def _health() -> list[tuple[str, bool, str]]:
    """Return each part of the installation: its name, whether it works, and its state in words."""
    workers = workers_seen()
    failed = sum(
        model._default_manager.filter(status=RunStatus.FAILED, finished__gte=timezone.now() - DAY).count()
        for model in job_models()
    )
    free = shutil.disk_usage(settings.DATA_DIR).free / GIGABYTE
    parts = [(name.capitalize(), state == "ok", state) for name, state in unavailable.parts().items()]
    worker_words = "works" if workers else "none is running; nothing is trained until one is started"
    return [
        *parts,
        ("Free space", free > unavailable.FREE_BYTES / GIGABYTE, f"{free:,.1f} GB"),
        ("Workers", bool(workers), f"{workers}: {worker_words}"),
        ("Failed jobs in 24 hours", True, f"{failed:,}"),
    ]


def _queue() -> dict[str, Any]:
    """Return running jobs and then waiting ones, oldest first, and how many more there are."""
    jobs = [
        {
            "job": job,
            "kind": model._meta.label_lower,
            "noun": model._meta.verbose_name,
            "since": job.started or job.created,
        }
        for model in job_models()
        for job in model._default_manager.filter(status__in=ACTIVE)
        .select_related("owner")
        .order_by("created")[: MOST_JOBS + 1]
    ]
    jobs.sort(key=lambda line: (line["job"].status != RunStatus.RUNNING, line["since"]))
    return {"jobs": jobs[:MOST_JOBS], "more_jobs": len(jobs) > MOST_JOBS}


def _user(request: HttpRequest) -> Any:
    """Return the account that a form names. Raises PermissionDenied unless the caller manages people."""
    _check_manager(request)
    name = request.POST.get("user", "")
    user = get_user_model().objects.filter(username=name, visit=None).first() if "\x00" not in name else None
    if user is None:
        raise Http404
    return user


def _check_manager(request: HttpRequest) -> None:
    if not request.user.is_superuser:
        raise PermissionDenied("Only administrators can manage people.")


def _check_other(request: HttpRequest, user: Any) -> None:
    """Raise Conflict for the caller's own account, so that an administrator always remains."""
    if user.pk == request.user.pk:
        raise Conflict("You cannot change your own role or access. Ask another administrator.")


def _log(request: HttpRequest, user: Any, flag: int, words: str) -> None:
    LogEntry.objects.log_actions(request.user.pk, [user], flag, change_message=words, single_object=True)


def _change_role(request: HttpRequest) -> str:
    user = _user(request)
    role = ROLES.get(request.POST.get("role", ""))
    if role is None:
        raise Unprocessable("This is not a role. Choose one of the list.")
    _check_other(request, user)
    with transaction.atomic():
        _lock_managers(request)
        type(user).objects.filter(pk=user.pk).update(is_staff=role.staff, is_superuser=role.superuser)
        _log(request, user, CHANGE, f"role: {role.label}")
    messages.success(request, f"{user} is now: {role.label}.")
    return ""


def _change_access(request: HttpRequest) -> str:
    user = _user(request)
    _check_other(request, user)
    active = request.POST.get("active") == "1"
    with transaction.atomic():
        _lock_managers(request)
        type(user).objects.filter(pk=user.pk).update(is_active=active)
        _log(request, user, CHANGE, "access given back" if active else "access taken away")
    messages.success(request, f"{user} can sign in again." if active else f"{user} can no longer sign in or call.")
    return ""


def _lock_managers(request: HttpRequest) -> None:
    """Lock the administrators. Raises Conflict if the caller is none any more: two could remove each other at once."""
    managers = get_user_model().objects.select_for_update().filter(is_superuser=True, is_active=True)
    if request.user.pk not in {user.pk for user in managers}:
        raise Conflict("You are no longer an administrator.")


def _add_person(request: HttpRequest) -> str:
    """Create an account, and return the link on which its owner sets a password."""
    _check_manager(request)
    user = get_user_model()(
        username=request.POST.get("username", "").strip(), email=request.POST.get("email", "").strip()
    )
    user.set_unusable_password()
    try:
        user.full_clean()
    except ValidationError as error:
        words = " ".join(text for texts in error.message_dict.values() for text in texts)
        raise Unprocessable(f"The account was not created. {words}") from None
    with transaction.atomic():
        user.save()
        _log(request, user, ADDITION, "added")
    messages.success(request, f"The account {user} was created.")
    return _password_link(request, user)


def _send_link(request: HttpRequest) -> str:
    """Return a link to a new password for an account."""
    user = _user(request)
    if not user.is_active:
        raise Conflict("This account has no access. Restore its access first.")
    _log(request, user, CHANGE, "link to a new password")
    return _password_link(request, user)


def _password_link(request: HttpRequest, user: Any) -> str:
    key = {"uidb64": urlsafe_base64_encode(force_bytes(user.pk)), "token": default_token_generator.make_token(user)}
    return request.build_absolute_uri(reverse("password_reset_confirm", kwargs=key))


def _stop_job(request: HttpRequest) -> str:
    kinds = {model._meta.label_lower: model for model in job_models()}
    model = kinds.get(request.POST.get("kind", ""))
    try:
        job = None if model is None else model._default_manager.filter(pk=request.POST.get("job", "")).first()
    except ValidationError:  # not the form of an id
        job = None
    if job is None:
        raise Http404
    cancel(job)
    messages.success(request, f"Stopping {job}.")
    return ""


CHANGES: dict[str, Callable[[HttpRequest], str]] = {
    "role": _change_role, "access": _change_access, "add": _add_person, "link": _send_link, "stop": _stop_job,
}  # fmt: skip
