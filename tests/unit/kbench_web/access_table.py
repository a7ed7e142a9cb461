"""Who may read what: each address of the site by who gets an answer, when the thing is alice's."""

from __future__ import annotations

PUBLIC = "everybody"
OF_GUESTS = "who is not signed in"
OF_USERS = "who is signed in"
OF_OWNERS = "its owner and admins"
OF_ADMINS = "admins"
FORMS = "nobody: it takes forms alone"
ABSENT = "nobody, in the site of the test"

_TABLE = {
    PUBLIC: """
        /api/v1/openapi.json /api/v1/docs /api/v1/site /api/v1/tasks
        /api/v1/tasks/<slug> /api/v1/tasks/<slug>/versions /api/v1/tasks/<slug>/versions/<number>
        /api/v1/queue /api/v1/rewards /api/v1/runs /api/v1/challenges /api/v1/challenges/<slug>
        /api/v1/challenges/<slug>/entries /api/v1/entries/<entry_id>
        /api/v1/tasks/<slug>/judgements /api/v1/leaderboard /api/ /sign-in/with/login/cancelled/
        /account/email/sent/ /account/email/confirm/<key>/ /reset-password/ /reset-password/sent/
        /reset-password/<uidb36>-<key>/ /agents.md /llms.txt /robots.txt /client/kbench.ipynb /docs/
        /docs/<name>/ /docs/<name>.md
        /search/ /search/suggestions/ /tasks/<slug>/versions/<number>/judgements/ /submit/
        /submit/task/ /submit/attempts/ /queue/ /feeds/tasks/<slug>.atom
        /feeds/boards/<device_slug>.atom /runs/new/
        /runs/compare/ /runs/ablation/ /runs/ /verifiers/ /verifiers/tunings/<tuning_id>/
        /challenges/ /challenges/<slug>/ /entries/<entry_id>/ / /leaderboard/ /leaderboard/cite/
        /tasks/ /tasks/<slug>/ /tasks/<slug>/soundness/ /tasks/<slug>/versions/
        /tasks/<slug>/versions/<number>/ /tasks/<slug>/versions/<number>/files/<path>
        /language-models/ /compare/submissions/ /compare/agents/ /compare/language-models/
        /ws/queue/
        """,
    OF_GUESTS: "/sign-in/ /sign-up/ /reset-password/done/",
    OF_USERS: """
        /api/v1/submissions /sign-in/with/ /account/ /account/name/ /account/delete/
        /account/sessions/ /account/password/ /account/confirm/ /drafts/ /notices/
        /notices/settings/
        """,
    OF_OWNERS: """
        /api/v1/submissions/<submission_id> /api/v1/submissions/<submission_id>/status
        /api/v1/runs/<run_id> /api/v1/runs/<run_id>/events
        /submissions/<short_submission>/ /runs/<short_run>/
        /api/v1/runs/<run_id>/candidates/<number> /drafts/<draft_id>/ /drafts/<draft_id>/act/
        /drafts/<draft_id>/download/ /drafts/<draft_id>/trials/ /drafts/<draft_id>/judgements/
        /submissions/<submission_id>/ /submissions/<submission_id>/source/
        /submissions/<submission_id>/differences/ /submissions/<submission_id>/badge.svg
        /submissions/<submission_id>/card.png /evaluations/<evaluation_id>/live/
        /evaluations/<evaluation_id>/json/ /runs/<run_id>/ /runs/<run_id>/head/
        /runs/<run_id>/changes/ /runs/<run_id>/replay/ /runs/<run_id>/candidates/<number>/
        /runs/<run_id>/calls/<number>/
        /entries/<entry_id>/transcript/ /agents/<agent_id>/ /language-models/<language_model_id>/
        /ws/evaluations/<evaluation_id>/ /ws/runs/<run_id>/
        """,
    OF_ADMINS: """
        /curate/ /curate/history/ /tasks/<slug>/curate/ /tasks/<slug>/reevaluate/
        /tasks/<slug>/reevaluate/<number>/ /quarantine/ /challenges/new/ /operate/people/
        /operate/people/<user_id>/ /operate/ /metrics /operate/runners/<runner_id>/sensors/
        /operate/queues/<device_slug>/empty/ /operate/runners/add/ /language-models/new/
        /language-models/<language_model_id>/edit/
        """,
    FORMS: """
        /api/v1/drafts
        /api/v1/submissions/<submission_id>/audit /api/v1/submissions/<submission_id>/cancel
        /api/v1/runs/<run_id>/pause /api/v1/runs/<run_id>/resume /api/v1/runs/<run_id>/stop
        /api/v1/runs/<run_id>/extend /api/v1/runs/<run_id>/again
        /api/v1/entries/<entry_id>/report /api/v1/entries/<entry_id>/finish /sign-out/
        /account/tokens/<token_id>/revoke/ /account/sessions/end/
        /account/sessions/<session_id>/end/ /operate/people/sign-up/
        /operate/people/invitations/<invitation_id>/revoke/ /operate/people/<user_id>/change/
        /operate/people/<user_id>/reset/ /operate/people/<user_id>/sessions/
        /operate/announcements/<announcement_id>/end/ /operate/runners/<runner_id>/
        /operate/tokens/<token_id>/revoke/ /operate/tokens/<token_id>/clear/
        /api/v1/drafts /runs/new/estimate/ /language-models/<language_model_id>/remove/
        /curate/bulk/
        /drafts/example/ /tasks/<slug>/versions/<number>/draft/ /drafts/<draft_id>/check/
        /drafts/<draft_id>/try/ /checks/<check_id>/cancel/ /submit/rank/<submission_id>/
        /tasks/<slug>/reevaluate/<number>/cancel/ /curate/check/ /curate/reevaluate/
        /submissions/<submission_id>/rerun/ /evaluations/<evaluation_id>/cancel/
        /submissions/<submission_id>/audit/ /quarantine/<case_id>/decide/ /notices/read/
        /notices/<notice_id>/open/ /notices/watch/ /notices/watch/<watch_id>/end/
        /notices/webhooks/ /notices/webhooks/<webhook_id>/test/
        /notices/webhooks/<webhook_id>/delete/ /runs/<run_id>/pause/ /runs/<run_id>/resume/
        /runs/<run_id>/stop/ /runs/<run_id>/extend/ /runs/<run_id>/candidates/<number>/enter/
        /challenges/<slug>/end/ /entries/<entry_id>/finish/
        /language-models/<language_model_id>/test/
        """,
    ABSENT: """
        /account/email/ /account/inactive/ /account/password/set/ /api/v1/
        /api/v1/tasks/<slug>/soundness /client/<name> /feeds/runs/<run_id>.atom
        /sign-in/with/github/login/ /sign-in/with/github/login/callback/
        /sign-in/with/login/error/ /sign-in/with/oidc/<provider_id>/login/
        /sign-in/with/oidc/<provider_id>/login/callback/ /sign-in/with/signup/ /submit/source/
        """,
}
READERS = {path: reader for reader, paths in _TABLE.items() for path in paths.split()}
"""By address, without its converters."""

VISITOR, OTHER, OWNER, ADMIN = "visitor", "another user", "owner", "admin"
"""As whom somebody asks."""
_GOES = {200, 302}
_EVERYBODY = {VISITOR: {200}, OTHER: {200}, OWNER: {200}, ADMIN: {200}}
_REFUSED = {302, 401, 403, 404}
STATUSES = {
    PUBLIC: _EVERYBODY,
    OF_GUESTS: {VISITOR: {200}, OTHER: {302}, OWNER: {302}, ADMIN: {302}},
    OF_USERS: _EVERYBODY | {VISITOR: {302, 401}},
    OF_OWNERS: {VISITOR: {302, 404}, OTHER: {404}, OWNER: _GOES, ADMIN: _GOES},
    OF_ADMINS: {VISITOR: {302, 403}, OTHER: {403}, OWNER: {403}, ADMIN: {200}},
    FORMS: {VISITOR: {302, 405}, OTHER: {405}, OWNER: {405}, ADMIN: {405}},
    ABSENT: dict.fromkeys((VISITOR, OTHER, OWNER, ADMIN), _REFUSED),
}
"""What they are answered on a GET."""
