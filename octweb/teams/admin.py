"""Let the administration hand over what belongs to teams before it deletes an account."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.db import transaction
from django.http import HttpRequest

from octweb.teams.leaving import hand_over, teams_without_heir

User = get_user_model()
admin.site.unregister(User)


@admin.register(User)
class MemberAdmin(UserAdmin):
    """Accounts. What a deleted one made in a team goes to an owner of the team."""

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return what would be deleted after the hand-over. The last owner of a team is protected."""
        users = list(objs)
        teams = [f"team {team}, whose last owner is {user}" for user in users for team in teams_without_heir(user)]
        if teams:
            return [], {}, set(), teams
        with transaction.atomic():
            for user in users:
                hand_over(user)
            found = super().get_deleted_objects(objs, request)
            transaction.set_rollback(True)  # only the deletion itself hands over
        return found

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        hand_over(obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        for user in queryset:
            self.delete_model(request, user)
