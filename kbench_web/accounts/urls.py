"""Addresses of accounts and their tokens."""

from __future__ import annotations

from django.contrib.auth import views as auth_views
from django.urls import path

from kbench_web.accounts import views

urlpatterns = [
    path("sign-in/", views.SignInView.as_view(), name="login"),
    path("sign-out/", auth_views.LogoutView.as_view(), name="logout"),
    path("sign-up/", views.sign_up, name="sign-up"),
    path("account/", views.account, name="account"),
    path("account/tokens/<int:token_id>/revoke/", views.revoke_token, name="revoke-token"),
]
