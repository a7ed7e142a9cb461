"""Addresses of accounts and their tokens.

Names that begin with `account_`, `usersessions_` and `socialaccount_` are those by which
django-allauth finds its pages.
"""

from __future__ import annotations

from allauth.account import views as allauth
from allauth.urls import build_provider_urlpatterns
from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path, re_path

from kbench_web.accounts import sessions, sign_in, views

_sign_in = sign_in.SignInView.as_view()
_sign_up = sign_in.SignUpView.as_view()

urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/", _sign_in, name="login"),
    path("sign-in/", _sign_in, name="account_login"),
    path("sign-in/with/", include("allauth.socialaccount.urls")),
    path("sign-in/with/", include(build_provider_urlpatterns())),
    path("sign-out/", LogoutView.as_view(), name="logout"),
    path("sign-out/", LogoutView.as_view(), name="account_logout"),
    path("sign-up/", _sign_up, name="sign-up"),
    path("sign-up/", _sign_up, name="account_signup"),
    path("account/", views.account, name="account"),
    path("account/name/", views.name, name="account-name"),
    path("account/delete/", views.delete, name="account-delete"),
    path("account/tokens/<int:token_id>/revoke/", views.revoke_token, name="revoke-token"),
    path("account/sessions/", sessions.sessions, name="usersessions_list"),
    path("account/sessions/end/", sessions.end_all_others, name="sessions-end"),
    path("account/sessions/<int:session_id>/end/", sessions.end_session, name="session-end"),
    path("account/password/", sign_in.PasswordChangeView.as_view(), name="account_change_password"),
    path("account/password/set/", sign_in.PasswordSetView.as_view(), name="account_set_password"),
    path("account/confirm/", sign_in.ReauthenticateView.as_view(), name="account_reauthenticate"),
    path("account/inactive/", sign_in.inactive, name="account_inactive"),
    path("account/email/", sign_in.EmailView.as_view(), name="account_email"),
    path(
        "account/email/sent/",
        allauth.email_verification_sent,
        name="account_email_verification_sent",
    ),
    re_path(
        r"^account/email/confirm/(?P<key>[-:\w]+)/$",
        allauth.confirm_email,
        name="account_confirm_email",
    ),
    path("reset-password/", sign_in.PasswordResetView.as_view(), name="account_reset_password"),
    path("reset-password/sent/", sign_in.reset_sent, name="account_reset_password_done"),
    path("reset-password/done/", sign_in.reset_done, name="account_reset_password_from_key_done"),
    re_path(
        r"^reset-password/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        sign_in.ResetFromKeyView.as_view(),
        name="account_reset_password_from_key",
    ),
]
