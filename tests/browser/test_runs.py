"""Somebody starts a run, watches, opens, pauses, resumes, stops and replays it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, Route, WebSocketRoute, expect

from gpu_runner.data.queue import Urgency
from gpu_runner.data.verdict import Verdict
from kbench_web.processes.installation import WORKER_OPTIONS
from runs_app.optimiser.evolve.judging import Confusion, truth
from tests.browser.conftest import MANY, Stack
from tests.browser.fake_runner import FakeRunner
from tests.browser.walking import MARK, MARKED, WIDTH, sign_in, sign_up

COUNTS = "[data-figure=candidates-sub]"
FIVE = "including the seed kernel; others: 4 measured, 3 correct"


@pytest.fixture(scope="module")
def working(stack: Stack) -> Stack:
    """The site with the worker that advances runs."""
    stack.spawn("runs", "manage.py", "rqworker", "runs", *WORKER_OPTIONS)
    return stack


def start(page: Page, url: str, evaluations: int = 40) -> str:
    """Start a run of the knobs of a matrix multiplication; the address of its page."""
    page.goto(f"{url}/runs/new/?task=matrix_mul")
    page.locator("input[name=strategy][value=autotune]").check()
    page.locator("#id_evaluations").fill(str(evaluations))
    expect(page.locator("#estimate")).to_contain_text("Evaluations")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile(r"/runs/[0-9a-f-]{36}/"))
    return page.url


def test_the_form_keeps_what_was_chosen(page: Page, stack: Stack) -> None:
    """Before the site has answered, after "Back", and no cap that couldn't be checked."""
    page.route("**/estimate/", lambda route: None)  # never answered
    page.goto(f"{stack.url}/runs/new/?task=matrix_mul")
    page.locator("#id_name").fill("mine")
    page.locator("#id_evaluations").fill("17")
    page.goto(f"{stack.url}/runs/")
    page.go_back()
    expect(page.locator("#id_name")).to_have_value("mine")
    expect(page.locator("#id_evaluations")).to_have_value("17")
    page.evaluate(
        """() => {
            const detail = { target: document.getElementById("strategies") };
            const swapped = (name) => document.dispatchEvent(new CustomEvent(name, { detail }));
            document.querySelector("input[name=strategy][value=fsr]").checked = true;
            swapped("htmx:oobBeforeSwap");
            document.querySelector("input[name=strategy][value=autotune]").checked = true;
            swapped("htmx:oobAfterSwap");
        }"""
    )
    expect(page.locator("input[name=strategy][value=fsr]")).to_be_checked()
    page.evaluate(
        """() => document.getElementById("run-form").insertAdjacentHTML("beforeend",
            '<input type="checkbox" name="models" data-priced="no" id="unpriced">')"""
    )
    page.locator("#id_usd").evaluate("it => { it.defaultValue = it.value = '2'; }")
    page.locator("#unpriced").check()
    assert page.locator("#id_usd").input_value() == ""
    page.locator("#unpriced").uncheck()
    assert page.locator("#id_usd").input_value() == "2"


def control(page: Page, button: str, status: str) -> None:
    """Press one of the run's buttons."""
    if button == "Stop":  # it asks first
        page.locator("#stop summary").click()
        button = "Stop permanently"
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.locator("#run-head")).to_have_attribute("data-status", status)


def measure(runner: FakeRunner, level: float, verdict: Verdict = Verdict.CORRECT) -> None:
    """Take the next evaluation, and end it."""
    runner.beat()
    runner.take(urgency=Urgency.RUNS)
    runner.finish(verdict, level)


def test_a_run_from_the_form_to_the_replay(page: Page, working: Stack, runner: FakeRunner) -> None:
    """Every step that a person takes, on one page that is never loaded again by itself."""
    sign_up(page, working.url, "tuner")
    start(page, working.url)
    page.evaluate(MARK)
    expect(page.locator("#feed-state")).to_have_text("live")
    rows = page.locator(".stream-row")

    measure(runner, 1.0)
    expect(page.locator("[data-figure=best-sub]")).to_contain_text("candidate 1")
    for level, verdict in (
        (1.3, Verdict.CORRECT),
        (1.0, Verdict.WRONG_RESULT),
        (1.9, Verdict.CORRECT),
    ):
        measure(runner, level, verdict)
    expect(page.locator("#outcomes")).to_contain_text("Wrong result")
    expect(page.locator("#best-chart .main-svg").first).to_be_visible()
    expect(page.locator("#headline")).to_contain_text("the speed of the seed kernel")
    expect(rows.filter(has_text="Wrong result")).to_have_count(1)
    assert page.evaluate(MARKED), "the page was loaded again"

    rows.filter(has_text="Correct").first.click()
    drawer = page.locator("#drawer")
    expect(drawer).to_contain_text("Changes from parent")
    expect(drawer).to_contain_text("Knobs")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()

    resumed(page, runner)
    control(page, "Stop", "STOPPED")
    cancelled(page)
    replay(page)
    runner.finish_all()


def resumed(page: Page, runner: FakeRunner) -> None:
    """After a pause the run goes on, with a fifth measurement."""
    control(page, "Pause", "PAUSED")
    control(page, "Resume", "RUNNING")
    page.evaluate(MARK)
    measure(runner, 2.4)
    expect(page.locator("#best-words")).to_contain_text("best: candidate")
    expect(page.locator(COUNTS)).to_have_text(FIVE, timeout=60_000)
    assert page.evaluate(MARKED), "the page was loaded again"


def cancelled(page: Page) -> None:
    """What was in flight as the run was stopped is neither measured nor failed."""
    assert page.evaluate(MARKED), "the page was loaded again"
    expect(page.locator(".stream-row").filter(has_text="Canceled").first).to_be_visible()
    expect(page.locator("#outcomes")).not_to_contain_text("System error")
    expect(page.locator(COUNTS)).to_have_text(FIVE)


def replay(page: Page) -> None:
    """The slider shows the past, the button leads back."""
    expect(page.locator("#log-lines")).to_contain_text("Stopped")
    count = page.locator(".stream-count")
    now = count.inner_text()
    slider = page.locator("#replay-slider")
    slider.focus()
    page.keyboard.press("Home")
    expect(count).to_have_text("0 of 0")
    expect(page.locator(".replay-words")).to_contain_text("after event 0 of")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(count).to_have_text("1 of 1")
    expect(page.locator("#log-lines")).not_to_contain_text("Stopped")
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.locator("#log-lines")).to_contain_text("Stopped", timeout=40_000)
    page.get_by_role("button", name="Back to now").click()
    expect(count).to_have_text(now)
    expect(page.locator(".replay-words")).to_contain_text("showing the newest")


def test_a_button_says_that_the_site_is_away(
    page: Page, working: Stack, runner: FakeRunner
) -> None:
    """The page stays, and the button works again once the site does."""
    sign_up(page, working.url, "traveller")
    address = start(page, working.url)
    page.route("**/pause/", lambda route: route.fulfill(status=502, body="away"))
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator("#control-words")).to_contain_text("status 502")
    assert page.url == address
    page.unroute("**/pause/")
    control(page, "Pause", "PAUSED")
    control(page, "Stop", "STOPPED")
    runner.finish_all()


def test_without_a_socket_the_page_asks(page: Page, working: Stack, runner: FakeRunner) -> None:
    """A network that drops WebSockets costs seconds, not candidates."""
    sign_up(page, working.url, "poller")
    page.route_web_socket(re.compile(r"/ws/runs/"), lambda socket: socket.close())
    start(page, working.url)
    expect(page.locator("#feed-state")).to_contain_text("updating")
    measure(runner, 1.0)
    expect(page.locator("[data-figure=best-sub]")).to_contain_text("candidate 1")
    control(page, "Stop", "STOPPED")
    runner.finish_all()


def open_invented(page: Page, address: str) -> None:
    """Open the page of a run, and wait until it has read all events."""
    page.goto(address)
    expect(page.locator("#stream .stream-count")).to_contain_text(f"of {MANY:,}")
    expect(page.locator("#loading")).to_be_empty()


def right_votes(page: Page) -> tuple[dict[str, Confusion], dict[str, Confusion]]:
    """The script's counts of votes against hardware, and what they should be."""
    rows = page.evaluate("kbenchRun.state.candidates.map(({votes, verdict}) => ({votes, verdict}))")
    judged: dict[str, list[tuple[bool, bool]]] = {}
    for row in rows:
        for name, passes in (row["votes"] or {}).items():
            known = truth(name, row["verdict"])
            if known is not None:
                judged.setdefault(name, []).append((bool(passes), known))
    counts = page.evaluate("kbenchRun.verifiers()")
    counted = {
        name: Confusion(
            caught=each["refusedWrong"],
            false_alarms=each["refusedRight"],
            missed=each["passedWrong"],
            passed=each["passedRight"],
        )
        for name, each in counts.items()
    }
    return counted, {name: Confusion.of(pairs) for name, pairs in judged.items()}


def test_votes_are_counted_as_the_site_counts_them(page: Page, invented: str) -> None:
    """By what hardware said in each verifier's own question."""
    open_invented(page, invented)
    counted, expected = right_votes(page)
    assert counted == expected
    assert len(counted) == 3


def test_many_candidates(page: Page, invented: str) -> None:
    """The list holds only the rows in view; filters, keys and the genealogy work."""
    open_invented(page, invented)
    rows = page.locator(".stream-row")
    expect(rows.first).to_contain_text(f"#{MANY}")
    assert rows.count() < 40
    expect(page.locator("#islands")).to_contain_text("Island 3")
    expect(page.locator("#models")).to_contain_text("gpt-5.1")
    expect(page.locator("#verifiers")).to_contain_text("numerics")
    known = page.request.get(invented.replace("/runs/", "/api/v1/runs/").rstrip("/")).json()
    shown = page.evaluate(
        "(({evaluations, candidates, best}) => ({evaluations, best, candidates: candidates.length,"
        "best_latency_ns: candidates[best - 1].latency_ns, ...kbenchRun.spent()}))(kbenchRun.state)"
    )
    assert shown == {name: pytest.approx(known[name]) for name in shown}

    page.locator("#stream-filter").select_option("COMPILE_ERROR")
    expect(rows.first).to_contain_text("Compile error")
    page.locator("#stream-filter").select_option("all")
    box = page.get_by_role("listbox")
    box.focus()
    for key in ("j", "j", "j", "k", "Enter"):
        page.keyboard.press(key)
    title = page.locator(".drawer-title")
    expect(title).to_have_text(f"Candidate {MANY - 1}")
    expect(page).to_have_url(re.compile(f"#candidate-{MANY - 1}$"))
    page.locator(".drawer-body a[data-candidate]").first.click()
    expect(title).not_to_have_text(f"Candidate {MANY - 1}")
    page.get_by_role("button", name="Close").click()

    page.locator("#genealogy-frame").scroll_into_view_if_needed()
    page.evaluate("document.querySelector('#genealogy-frame').scrollLeft = 0")
    place = page.evaluate("kbenchRun.genealogy.where(1)")
    page.locator("#genealogy-frame canvas").click(position=place)
    expect(title).to_have_text("Candidate 1")
    expect(page.locator("#genealogy-words")).to_contain_text("#1")


def test_what_is_read_stays_where_it_is(page: Page, invented: str) -> None:
    """Candidates that come while somebody reads further down are announced, not pushed in."""
    open_invented(page, invented)
    page.locator("#stream").scroll_into_view_if_needed()
    page.evaluate("kbenchRun.replay.seek(Math.floor(kbenchRun.state.seq / 2))")
    count = page.locator(".stream-count")
    expect(count).not_to_contain_text(f"of {MANY:,}")
    page.evaluate("document.querySelector('.stream-box').scrollTop = 960")
    seen = page.locator(f"#stream-{int(count.inner_text().split()[0]) - 22}")
    expect(seen).to_be_in_viewport()
    place = seen.bounding_box()
    page.evaluate("kbenchRun.replay.end()")
    pill = page.locator(".stream-pill")
    expect(pill).to_contain_text("new")
    assert seen.bounding_box() == place
    pill.click()
    expect(page.locator(".stream-row").first).to_contain_text(f"#{MANY}")
    expect(pill).to_be_hidden()


def test_a_broken_connection_goes_on_where_it_was(page: Page, invented: str) -> None:
    """The new socket asks for what came after the newest event that is known."""
    sockets: list[WebSocketRoute] = []

    def through(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    page.route_web_socket(re.compile(r"/ws/runs/"), through)
    open_invented(page, invented)
    state = page.locator("#feed-state")
    expect(state).to_have_text("live")
    newest = page.evaluate("kbenchRun.state.seq")
    sockets[0].close()
    expect(state).to_contain_text("updating")
    expect(state).to_have_text("live")
    assert len(sockets) == 2
    assert sockets[1].url.endswith(f"?since={newest}")


@pytest.mark.sampled(1)  # narrow and dark is the harder one
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_no_page_of_a_run_is_wider_than_the_screen(
    page: Page, invented: str, width: int, scheme: str
) -> None:
    """The live page, its drawer and the pages of a candidate and a call."""
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    open_invented(page, invented)
    assert page.evaluate(WIDTH) <= width
    for part in ("candidates/7/", "calls/3/"):
        page.goto(f"{invented}{part}")
        assert page.evaluate(WIDTH) <= width
    page.goto(f"{invented}#candidate-7")
    expect(page.locator("#drawer")).to_contain_text("Made by")
    assert page.evaluate(WIDTH) <= width


def test_without_scripts_everything_can_be_read(invented: str, browser: Browser) -> None:
    """The summary, a table of candidates, and a page for each."""
    quiet = browser.new_context(java_script_enabled=False)
    page = quiet.new_page()
    page.goto(invented)
    expect(page.get_by_text("All candidates as a table")).to_be_visible()
    expect(page.locator("#best-chart")).to_be_hidden()
    page.get_by_text("All candidates as a table").click()
    page.get_by_role("link", name=f"#{MANY}").click()
    expect(page.get_by_role("heading", name=f"Candidate {MANY}")).to_be_visible()
    quiet.close()


def test_the_sites_figures_stay_until_the_events_are_read(page: Page, invented: str) -> None:
    waiting: list[Route] = []
    page.route("**/changes?since=0", lambda route: waiting.append(route))  # noqa: PLW0108
    page.goto(invented)
    best, counts = page.locator("#best-words"), page.locator(COUNTS)
    expect(page.locator("#loading")).to_have_text("loading what has happened so far")
    page.wait_for_timeout(1500)  # it draws four times a second
    expect(counts).to_have_text(re.compile(r"others: [1-9]"))
    expect(best).not_to_contain_text("no correct candidate")
    for route in waiting:
        route.continue_()
    expect(page.locator("body")).to_have_attribute("data-drawn", re.compile(r"[1-9]"))


def test_a_stranger_sees_no_buttons(page: Page, seeded: Stack, invented: str) -> None:
    """Only the owner and admins control a run."""
    open_invented(page, invented)
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    sign_in(page, seeded.url, "ada")
    page.goto(invented)
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
