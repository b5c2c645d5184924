"""Roles of accounts, and the groups of a sign-on service that give them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry


@dataclass(frozen=True, kw_only=True)
class AccountRole:
    """A role of an account, in the words of the page and as Django stores it."""

    label: str
    about: str
    staff: bool
    superuser: bool


ROLES = {
    "member": AccountRole(label="Member", about="own data, trees and approved models", staff=False, superuser=False),
    "reviewer": AccountRole(label="Reviewer", about="sees everything and approves models", staff=True, superuser=False),
    "administrator": AccountRole(
        label="Administrator", about="a reviewer who also manages people", staff=True, superuser=True
    ),
}


def role_of(user: Any) -> str:
    """Return the key of the role of an account."""
    if user.is_superuser:
        return "administrator"
    return "reviewer" if user.is_staff else "member"


def role_of_groups(groups: Iterable[str]) -> str | None:
    """Return the role that groups of the sign-on service give, or None if they give none.

    Without OCTWEB_MEMBER_GROUPS every user is a member.
    """
    names = set(groups)
    if names.intersection(settings.ADMINISTRATOR_GROUPS):
        return "administrator"
    if names.intersection(settings.REVIEWER_GROUPS):
        return "reviewer"
    return "member" if not settings.MEMBER_GROUPS or names.intersection(settings.MEMBER_GROUPS) else None


def set_role_of_groups(user: Any, role: str) -> None:
    """Give an account its role, and log a change. Without groups in the settings, administrators choose roles here."""
    if role == role_of(user) or not (settings.REVIEWER_GROUPS or settings.ADMINISTRATOR_GROUPS):
        return
    user.is_staff = ROLES[role].staff
    user.is_superuser = ROLES[role].superuser
    user.save(update_fields=["is_staff", "is_superuser"])
    words = f"role by sign-on: {ROLES[role].label}"
    LogEntry.objects.log_actions(user.pk, [user], CHANGE, change_message=words, single_object=True)
