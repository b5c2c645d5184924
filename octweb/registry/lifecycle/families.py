"""Assign names to models: private for drafts, public and unique once approved."""

from __future__ import annotations

from itertools import count
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.text import slugify

from octweb.registry.models import Family

MAX_SLUG_CHARACTERS = 90  # characters; the model field also has space for a suffix


def lock_family(owner: Any, name: str) -> Family:
    """Return the owner's family of this name, locked; create it if needed.

    If the name is public for another user, it gets a suffix. Call this in a transaction.
    """
    slug = slugify(name)[:MAX_SLUG_CHARACTERS].strip("-") or "model"
    for suffix in count(1):
        name_with_suffix = _add_suffix(slug, suffix)
        if not Family.objects.filter(name=name_with_suffix, public=True).exclude(owner=owner).exists():
            family, _ = Family.objects.get_or_create(name=name_with_suffix, owner=owner)
            return Family.objects.select_for_update().get(pk=family.pk)
    raise AssertionError  # unreachable, because `count` never ends


def claim_name(family: Family) -> str:
    """Make the name of a family public. Return the change in words, or "" if the name stays.

    If another family has made the name public, this one gets a suffix.
    """
    if family.public:
        return ""
    before = family.name
    for suffix in count(1):
        name = _add_suffix(before, suffix)
        if suffix > 1 and Family.objects.filter(name=name, owner=family.owner_id).exists():
            continue
        try:
            with transaction.atomic():
                Family.objects.filter(pk=family.pk).update(name=name, public=True)
        except IntegrityError:  # another user has a public model of this name
            continue
        family.name = name
        family.public = True
        return "" if name == before else f"named {name}, since {before} is the name of another model"
    raise AssertionError


def _add_suffix(slug: str, suffix: int) -> str:
    return slug if suffix == 1 else f"{slug}-{suffix}"
