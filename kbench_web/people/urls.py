"""Addresses of the pages about accounts, for admins."""

from __future__ import annotations

from django.urls import path

from kbench_web.people import views

urlpatterns = [
    path("operate/people/", views.people, name="people"),
    path("operate/people/sign-up/", views.sign_up_mode, name="sign-up-mode"),
    path(
        "operate/people/invitations/<int:invitation_id>/revoke/",
        views.invitation_revoke,
        name="invitation-revoke",
    ),
    path("operate/people/<int:user_id>/", views.person, name="person"),
    path("operate/people/<int:user_id>/change/", views.person_change, name="person-change"),
    path("operate/people/<int:user_id>/reset/", views.person_reset, name="person-reset"),
    path("operate/people/<int:user_id>/sessions/", views.person_sessions, name="person-sessions"),
]
