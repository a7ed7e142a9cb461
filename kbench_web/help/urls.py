"""Addresses of the documents and of the search."""

from __future__ import annotations

from django.urls import path

from kbench_web.help import views

urlpatterns = [
    path("docs/", views.document_list, name="documents"),
    path("docs/<path:name>/", views.document, name="document"),
    path("search/", views.search, name="search"),
    path("search/suggestions/", views.suggestions, name="search-suggestions"),
]
