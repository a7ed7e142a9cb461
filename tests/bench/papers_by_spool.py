"""The papers' comparison on a GPU host that reaches no network: a site here, its jobs by spool.

python -m tests.bench.papers_by_spool --data FOLDER --spool DIR --device nvidia-h100
    --name "NVIDIA H100" --work COMMAND --base-url URL --api-name NAME [--key-variable VARIABLE]
    [--published FOLDER] [--task softmax ...] [--strategy evolve ...] [--evaluations 40]
    [--usd 2 --price-in 3 --price-out 15] [--pause 30] --yes

COMMAND carries DIR to the host, works there, and carries it back; `{spool}` stands for DIR. It is
called again and again, until all runs have ended: `rsync -a {spool} gpu: && ssh gpu ... && rsync
-a gpu:spool/ {spool}`. A later call with the same FOLDER goes on where this one was stopped. FOLDER
of --published: TASK.cu or TASK.cpp, ranked beside the runs. --evaluations and --usd are of one run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
import urllib.parse
from contextlib import closing
from pathlib import Path

from gpu_runner.data.numbers import duration_text
from gpu_runner.data.spool import SpoolFolder
from gpu_runner.data.verdict import DeviceKind, Verdict
from tests.bench.site import ALONE, Document, Site
from tests.bench.tables import table
from tests.installation import InstallationError

TASKS = ("softmax", "rms_norm", "matrix_mul", "layernorm", "llama_rmsnorm")
STRATEGIES = ("evolve", "cudamaster", "fsr", "islands")
COLUMNS = (
    *("task", "strategy", "seed kernel", "best", "what stands behind it", "published"),
    *("published / best", "evaluations", "tokens"),
)
AGENT = "published"
_OVER = ("FINISHED", "STOPPED", "PAUSED")  # it was paused by a person, or calls keep failing


def main() -> None:
    """Print the table."""
    options = parse_arguments()
    limits = {"KBENCH_MAX_RUNNING_RUNS_PER_USER": "1000", "KBENCH_CALL_WORKERS": "16"}
    limits |= {"KBENCH_MAX_RUN_USD": "1000000", "KBENCH_MAX_USD_PER_USER_DAY": "1000000"}
    limits |= {"KBENCH_KEY_VARIABLES": options.key_variable} if options.key_variable else {}
    words, folder = ("--no-demo", "--no-runners"), options.data.resolve()
    with closing(Site(DeviceKind.CPU, *words, settings=ALONE | limits, folder=folder)) as site:
        site.open(measures=False)
        carry(site, options)  # makes the device
        add_language_model(site, options)
        begin(site, options)
        while not is_over(site, options):
            if not carry(site, options):
                time.sleep(options.pause)
        beside = {task: published(site, task) for task in options.task}
        rows = [row(site, run, beside[run["task"]]) for run in all_runs(site)]
    print(table(COLUMNS, sorted(rows)))


def carry(site: Site, options: argparse.Namespace) -> bool:
    """Hand out what waits, have it done, and take it in; whether there was anything."""
    spool = str(options.spool.resolve())
    words = ["--device", options.device, "--new", options.name]
    site.installation.manage("spool", "export", spool, *words)
    if not SpoolFolder(options.spool).job_files() or ", 0 not done yet" in take_in(site, spool):
        return False
    print(f"{site.age_s:.0f} s: work", flush=True)
    subprocess.run(options.work.replace("{spool}", spool), shell=True, check=True)
    print(take_in(site, spool), flush=True)
    return True


def take_in(site: Site, spool: str) -> str:
    """Import what has come, maybe of an earlier call that was stopped; what the command said."""
    try:
        return site.installation.manage("spool", "import", spool).strip()
    except InstallationError as error:  # what was refused is queued again
        return str(error)


def add_language_model(site: Site, options: argparse.Namespace) -> None:
    """Register the endpoint, once."""
    fields = {
        "api_name": options.api_name,
        "base_url": options.base_url,
        "key_variable": options.key_variable,
        "price_in_usd": options.price_in,
        "price_out_usd": options.price_out,
    }
    lines = (
        "from django.utils import timezone",
        "from runs_app.models import LanguageModel",
        f"fields = {fields!r}",
        f"LanguageModel.objects.get_or_create(name={options.api_name!r},",
        "    defaults={'created_at': timezone.now(), **fields})",
    )
    site.installation.manage("shell", "-c", "\n".join(lines))


def begin(site: Site, options: argparse.Namespace) -> None:
    """Start the runs that are not there yet, and submit the published kernels."""
    there = {run["name"] for run in all_runs(site)}
    for run in all_runs(site):
        if run["status"] == "PAUSED":
            site.ask(f"runs/{run['id']}/resume", {})
    budget = {"evaluations": options.evaluations, "usd": options.usd, "wall_time_s": None}
    for task in options.task:
        for strategy in options.strategy:
            if (name := f"{task} {strategy}") not in there:
                document = {"task": task, "strategy": strategy, "device": options.device}
                document |= {"models": [options.api_name], "seed": 1, "budget": budget}
                site.ask("runs", document | {"name": name})
        if options.published and published(site, task) is None:
            submit(site, options, task)


def submit(site: Site, options: argparse.Namespace, task: str) -> None:
    """Enter the task's published kernel, if the folder has one."""
    paths = [options.published / f"{task}{suffix}" for suffix in (".cu", ".cpp")]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        return
    language = "cuda" if path.suffix == ".cu" else "cpp"
    document = {"task": task, "source": path.read_text(), "language": language}
    document |= {"device": options.device, "mode": "ranked", "agent": AGENT}
    site.ask("submissions", document)


def all_runs(site: Site) -> list[Document]:
    """All runs of the site."""
    return list(site.ask("runs?limit=200"))


def published(site: Site, task: str) -> Document | None:
    """The ranked evaluation of the task's published kernel; None without one."""
    query = urllib.parse.urlencode({"task": task, "agent": AGENT})
    found = site.ask(f"submissions?{query}")
    if not found:
        return None
    every = site.ask(f"submissions/{found[0]['id']}")["evaluations"]
    return next((dict(e) for e in every if e["mode"] == "ranked"), None)


def is_over(site: Site, options: argparse.Namespace) -> bool:
    """Whether all runs have ended or wait for a person, and all published kernels are ranked."""
    runs = all_runs(site)
    beside = [found for task in options.task if (found := published(site, task))]
    return all(run["status"] in _OVER for run in runs) and all(e["verdict"] for e in beside)


def row(site: Site, run: Document, beside: Document | None) -> list[str]:
    """One run beside the published kernel of its task."""
    whole = site.ask(f"runs/{run['id']}")
    best = whole["best_latency_ns"]
    theirs = beside["latency_ns"] if beside and beside["verdict"] == Verdict.CORRECT else None
    seed = whole["seed_latency_ns"]
    return [
        *(run["task"], run["strategy"], duration_text(seed) if seed else "-"),
        *(duration_text(best) if best else "-", whole["confirmation"]["state"]),
        duration_text(theirs) if theirs else (beside["verdict"] or "waits" if beside else "-"),
        f"{theirs / best:.2f}" if theirs and best else "-",
        *(str(whole["evaluations"]), f"{whole['tokens'] / 1e3:.0f}k"),
    ]


def parse_arguments() -> argparse.Namespace:
    """What the command line asks for; ends with 2 where it is wrong, or nothing may be spent."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the site's folder")
    parser.add_argument("--spool", type=Path, required=True, help="the spool's folder")
    parser.add_argument("--device", required=True, help="its slug, such as nvidia-h100")
    parser.add_argument("--name", required=True, help='its name, such as "NVIDIA H100"')
    parser.add_argument("--work", required=True, metavar="COMMAND", help="carry, work, carry back")
    parser.add_argument("--base-url", required=True, help="of the language model")
    parser.add_argument("--api-name", required=True, help="its name at the endpoint")
    parser.add_argument("--key-variable", default="", help="environment variable of its key")
    parser.add_argument("--published", type=Path, metavar="FOLDER", help="of TASK.cu or TASK.cpp")
    parser.add_argument("--task", nargs="+", default=list(TASKS))
    parser.add_argument("--strategy", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--evaluations", type=int, default=40, help="of one run")
    parser.add_argument("--usd", type=float, help="of one run; needs the prices")
    parser.add_argument("--price-in", type=float, help="USD a million tokens read")
    parser.add_argument("--price-out", type=float, help="USD a million tokens written")
    parser.add_argument("--pause", type=float, default=30.0, help="seconds, where nothing waits")
    parser.add_argument("--yes", action="store_true", help="spend it: without, it is only said")
    options = parser.parse_args()
    if options.key_variable and options.key_variable not in os.environ:
        parser.error(f"--key-variable: {options.key_variable} is not set")
    if options.usd is not None and None in (options.price_in, options.price_out):
        parser.error("--usd: give --price-in and --price-out, or nothing counts against it")
    if options.published and not options.published.is_dir():
        parser.error(f"--published: {options.published} is not a folder")
    runs = len(options.task) * len(options.strategy)
    print(f"{runs} runs of at most {options.evaluations} evaluations each")
    if not options.yes:
        parser.error("--yes: nothing was spent; say that it may be")
    return options


if __name__ == "__main__":
    main()
