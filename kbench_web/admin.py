"""Tokens of the API in the admin: to be revoked, never to be read."""

from __future__ import annotations

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django_rq.models import Dashboard

from kbench_web.models import ApiToken

# The dashboard of RQ: its pages need what RQ's defaults store, and ours say what waits and why.
admin.site.unregister(Dashboard)
# The admin's own form would let passwords be guessed beside the site's.

admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """See who has tokens, and revoke them."""

    list_display = ("__str__", "user", "scopes", "expires_at", "last_used_at", "revoked_at")
    list_filter = ("expires_at",)
    search_fields = ("user__username", "name", "prefix")
    exclude = ("digest",)
    actions = ("revoke",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Tokens come from `manage.py create_token`, which shows them once."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        """Whoever may change tokens may list and revoke them; there is nothing to edit."""
        return obj is None and super().has_change_permission(request, obj)

    @admin.action(description="Revoke the selected tokens", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """End the tokens' life now."""
        queryset.filter(revoked_at=None).update(revoked_at=timezone.now())
