"""Steps that a visitor takes, for several tests."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import Stack

CATALOG = Path(__file__).parents[2] / "tasks_app" / "catalog"
PASSWORD = "tensor-watcher-19"
FILLS = 3
MARK = "window.stillTheSamePage = true"
MARKED = "() => window.stillTheSamePage === true"
WIDTH = "document.documentElement.scrollWidth"
GOOD = (CATALOG / "vector_add" / "kernels" / "good.cpp").read_text()
WRONG = (
    'extern "C" void vector_add(const float* A, const float* B, float* C, int N) {\n'
    "    for (int i = 0; i < N; ++i) C[i] = A[i] - B[i];\n}\n"
)


def sign_up(page: Page, url: str, name: str) -> None:
    """Open an account and be signed in to it."""
    page.goto(f"{url}/sign-up/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)
    page.get_by_role("button", name="Sign up").click()
    page.get_by_role("link", name=name).wait_for()


def sign_in(page: Page, url: str, name: str) -> None:
    """Be signed in to an account that there is."""
    page.goto(f"{url}/sign-in/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name=name, exact=True).wait_for()


def sign_in_as_admin(page: Page, stack: Stack, name: str) -> None:
    """Make an admin's account, and be signed in to it."""
    add = f"User.objects.create_superuser('{name}', password='{PASSWORD}')"
    stack.run("manage.py", "shell", "-c", f"from django.contrib.auth.models import User; {add}")
    sign_in(page, stack.url, name)


def fits(page: Page) -> None:
    """Nothing is wider than a phone, in either theme."""
    before = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 800})
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert page.evaluate(WIDTH) <= 390, page.url
    page.set_viewport_size(before or {"width": 1280, "height": 800})


def begin_example(page: Page, url: str) -> None:
    """Start a draft from the example, and wait until its page's scripts are ready."""
    page.goto(f"{url}/drafts/")
    page.get_by_role("button", name="Start from the example").click()
    page.locator("#id_text").wait_for()  # the new page's: until it is there, the old one is loaded
    page.wait_for_load_state()


def submit(page: Page, url: str, source: str, task: str = "vector_add") -> str:
    """Submit a kernel for the CPU in ranked mode; return the address of its page, which is open."""
    write(page, url, source, task)
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("link", name="Its own page").click()
    page.wait_for_url("**/submissions/**")
    return page.url


def choose(page: Page, task: str) -> None:
    """Find a task by its slug and take it."""
    page.get_by_role("combobox", name="Task").fill(task)
    page.get_by_role("option").filter(has=page.get_by_text(task, exact=True)).click()


def write(page: Page, url: str, source: str, task: str = "vector_add") -> None:
    """Open the workbench and write a kernel for the CPU, to be ranked if it is submitted."""
    page.goto(f"{url}/submit/")
    page.locator("#submit-form[data-editor=yes]").wait_for()
    choose(page, task)
    page.get_by_label("Device").select_option("cpu")
    page.get_by_text("Ranked", exact=True).click()
    expect(page.locator(f"#brief a[href='/tasks/{task}/']").first).to_be_attached()
    for _ in range(FILLS):  # the starter of what was chosen may come while the text is put in
        page.get_by_label("Source").fill(source)
        if page.locator("#id_source").input_value().strip() == source.strip():
            return
    raise AssertionError("the editor does not hold what was put in")
