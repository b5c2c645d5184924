"""Ownership, decided in one place: a user sees own objects, staff see all, everyone else gets 404."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.http import Http404

M = TypeVar("M", bound=models.Model)


class OwnedQuerySet(models.QuerySet):
    """Querysets of objects with an `owner`."""

    def visible_to(self, user: Any) -> OwnedQuerySet:
        """The objects that `user` may see."""
        if not user.is_authenticated:
            return self.none()
        return self.kept() if user.is_staff else self.kept().filter(owner=user)

    def kept(self) -> OwnedQuerySet:
        """Those that nobody has deleted."""
        return self.filter(deleted_at=None) if issubclass(self.model, Deletable) else self.all()

    def deleted_by(self, user: Any) -> OwnedQuerySet:
        """What was deleted and can be brought back by `user`."""
        deleted = self.filter(deleted_at__isnull=False)
        return deleted if user.is_staff else deleted.filter(owner=user)

    def get_visible(self, user: Any, pk: Any) -> Any:
        """The object, or Http404 for one that does not exist or belongs to somebody else: the two look the same."""
        try:
            return self.visible_to(user).get(pk=pk)
        except (self.model.DoesNotExist, ValidationError, ValueError, TypeError) as error:
            raise Http404(f"There is no {self.model._meta.verbose_name} with this id, or it is not yours.") from error


class Owned(models.Model):
    """Base of everything that belongs to a user; the id is random, so that it says nothing and cannot be counted up."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created = models.DateTimeField(auto_now_add=True)

    objects = OwnedQuerySet.as_manager()

    class Meta:
        abstract = True
        ordering = ["-created", "-id"]


# What a list reads: the newest kept rows of one owner, and those of all owners for staff.
LIST_INDEXES = [
    models.Index(fields=["owner", "deleted_at", "-created", "-id"], name="%(class)s_of_owner"),
    models.Index(fields=["deleted_at", "-created", "-id"], name="%(class)s_of_all"),
]


class Deletable(Owned):
    """What is hidden when it is deleted, can be brought back for some weeks, and is removed after them."""

    deleted_at = models.DateTimeField(null=True, blank=True, db_index=True)

    class Meta(Owned.Meta):
        abstract = True
        indexes = LIST_INDEXES

    @classmethod
    def back_within(cls) -> timedelta:
        """How long it can be brought back after it was deleted."""
        return timedelta(days=30)
