"""Addresses of the site; each app brings its own."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from kbench_web.api import api
from kbench_web.audit_log import views as audit_log
from kbench_web.client import views as client
from kbench_web.help import views as help_pages
from kbench_web.people import views as people

handler500 = "kbench_web.out_of_service.server_error"
urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("api/v1/", api.urls),
    path("api/", client.api_docs, name="api-docs"),
    path("", include("kbench_web.accounts.urls")),
    path("curate/history/", audit_log.audit_log, name="audit-log"),
    path("agents.md", client.agents, name="agents-guide"),
    path("llms.txt", client.llms, name="llms"),
    path("robots.txt", client.robots, name="robots"),
    path("client/kbench.ipynb", client.notebook, name="client-notebook"),
    path("client/<str:name>", client.download, name="client-wheel"),
    path("docs/", help_pages.document_list, name="documents"),
    path("docs/<path:name>.md", help_pages.document_text, name="document-text"),
    path("docs/<path:name>/", help_pages.document, name="document"),
    path("search/", help_pages.search, name="search"),
    path("search/suggestions/", help_pages.suggestions, name="search-suggestions"),
    path("operate/people/", people.people, name="people"),
    path("operate/people/sign-up/", people.sign_up_mode, name="sign-up-mode"),
    path(
        "operate/people/invitations/<int:invitation_id>/revoke/",
        people.invitation_revoke,
        name="invitation-revoke",
    ),
    path("operate/people/<int:user_id>/", people.person, name="person"),
    path("operate/people/<int:user_id>/change/", people.person_change, name="person-change"),
    path("operate/people/<int:user_id>/reset/", people.person_reset, name="person-reset"),
    path("operate/people/<int:user_id>/sessions/", people.person_sessions, name="person-sessions"),
    path("", include("runs_app.urls")),
    path("", include("leaderboard_app.urls")),
]
