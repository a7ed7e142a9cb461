"""What a jailed process can see and do."""

from __future__ import annotations

import subprocess
import sys
import time
import venv
from contextlib import suppress
from pathlib import Path

import pytest

from gpu_runner.supervisor.host import jail, nvml
from gpu_runner.supervisor.host.jail import Jail, Limits
from gpu_runner.supervisor.host.process import OUTPUT_LIMIT_BYTES, ChildProcess
from gpu_runner.supervisor.oracle.client import cuda_environment
from gpu_runner.supervisor.runner.runner_process import vendor_libraries

pytestmark = pytest.mark.skipif(bool(jail.probe()), reason=f"no jail: {jail.probe()}")
LIMITS = Limits(cpu_s=20, memory_bytes=256 << 20, processes=32, temporary_bytes=1 << 20)


def shell(script: str, **settings: object) -> tuple[int | None, str]:
    made = Jail(limits=LIMITS, **settings)  # type: ignore[arg-type]
    with ChildProcess(made, ["/bin/bash", "-c", script], jailed=True) as child:
        status = child.wait(60)
    return status, child.output


def test_python_runs_from_an_environment_that_is_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between, link = tmp_path / "between", tmp_path / "environment"
    between.symlink_to(sys.prefix)
    link.symlink_to(between)
    monkeypatch.setattr(sys, "prefix", str(link))
    status, output = shell(f"{link}/bin/python -c 'print(1 + 1)'", paths=tuple(jail.python_paths()))
    assert (status, output.strip()) == (0, "2")


def test_python_finds_packages_that_its_environment_names_by_a_file(tmp_path: Path) -> None:
    """As on images that bring torch with them."""
    python = tmp_path / "venv/bin/python"
    other = tmp_path / "image/lib/python3/site-packages"
    (other / "brought").mkdir(parents=True)
    (other / "brought/__init__.py").touch()
    venv.create(tmp_path / "venv", symlinks=True)
    [own] = (tmp_path / "venv").glob("lib/python*/site-packages")
    (own / "image.pth").write_text(f"{other}\n")
    said = "from gpu_runner.supervisor.host import jail; print(*jail.python_paths())"
    root = Path(jail.__file__).parents[3]
    told = subprocess.run([python, "-c", said], cwd=root, check=True, capture_output=True)
    paths = tuple(map(Path, told.stdout.decode().split()))
    assert tmp_path / "image/lib" in paths
    assert root not in paths
    status, output = shell(f"{python} -c 'import brought; print(1 + 1)'", paths=paths)
    assert (status, output.strip()) == (0, "2"), output


def test_libraries_of_vendors_cannot_be_loaded(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # a jail is nobody
    real = tmp_path / "local/cuda-13.0/targets/x86_64-linux/lib/libcublas.so.13.1"
    for path in (real, tmp_path / "lib/x86_64-linux-gnu/libcudart.so.13"):
        path.parent.mkdir(parents=True)
        path.write_text("code")
    real.with_name("libcublas.so").symlink_to(real)
    (tmp_path / "local/cuda").symlink_to(tmp_path / "local/cuda-13.0")
    found = vendor_libraries(tmp_path)
    assert found == (real,)
    look = f"for f in {tmp_path}/lib/*/*.so* {tmp_path}/local/*/targets/*/lib/*; do cat $f; done"
    _, output = shell(look, paths=(tmp_path,))
    assert output.count("code") == 5
    _, output = shell(look, paths=(tmp_path,), hidden=found)
    assert output.count("code") == 1


def test_is_nobody_and_sees_no_home_no_secrets_no_processes_and_no_network() -> None:
    _, output = shell(
        "id -u; grep -E 'CapEff|NoNewPrivs' /proc/self/status;"
        " ls -d /home /root /var /work /etc/passwd 2>/dev/null; cd /proc; ls -d [0-9]* | wc -l;"
        " env | sort; cat /proc/net/dev | tail -n +3 | grep -v lo:"
    )
    uid, effective, privileges, processes, *lines = output.splitlines()
    assert int(uid) >= jail.FIRST_JAIL_UID or int(uid) == 65534
    assert int(effective.split()[1], 16) == 0
    assert privileges.split()[1] == "1"
    assert int(processes) <= 6
    known = "HOME LANG LOGNAME OLDPWD PATH PWD SHLVL TMPDIR USER _"
    assert all(line.split("=")[0] in known for line in lines)


def test_can_write_only_to_its_small_tmpfs_and_a_flood_does_not_block() -> None:
    _, output = shell(
        "touch /usr/x /etc/x /x /dev/x 2>&1 | grep -c -E 'Read-only|denied';"
        " head -c 9000000 /dev/zero > /tmp/big 2>/dev/null; stat -c %s /tmp/big"
    )
    refused, size = output.split()
    assert int(refused) == 4
    assert int(size) <= 1 << 20
    status, output = shell("cat a.txt; echo >> a.txt", files={"a.txt": "hello"})
    assert output.startswith("hello")
    assert status != 0
    status, output = shell("head -c 3000000 /dev/zero | tr '\\0' x")
    assert (status, len(output)) == (0, OUTPUT_LIMIT_BYTES)


@pytest.mark.parametrize(
    "program",
    [
        ["/bin/bash", "-c", "x=$(head -c 700000000 /dev/zero | tr '\\0' x); echo survived"],
        ["/usr/bin/python3", "-c", "import mmap; m = mmap.mmap(-1, 700 << 20);"
         " m.write(b'x' * (700 << 20)); print('survived')"],  # shared memory counts too
    ],
)  # fmt: skip
def test_process_that_takes_too_much_memory_is_killed(program: list[str]) -> None:
    with ChildProcess(Jail(limits=LIMITS), program, jailed=True) as child:
        child.wait(60)
        assert child.memory_exceeded
    assert "survived" not in child.output


def test_leaving_kills_the_whole_tree_at_once() -> None:
    made = Jail(limits=LIMITS)
    began = time.monotonic()
    script = "for i in 1 2 3; do setsid sleep 71.5 & done; echo up; sleep 71.5"
    with ChildProcess(made, ["/bin/bash", "-c", script], jailed=True) as child:
        while "up" not in child.output and time.monotonic() - began < 40:
            time.sleep(0.05)
    assert time.monotonic() - began < 60
    with ChildProcess(made, ["/bin/bash", "-c", "true"], jailed=True) as other:
        other.wait(60)
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            commands.append(path.read_bytes())
    assert not [command for command in commands if b"71.5" in command and b"sleep" in command]


def test_a_gpus_node_has_the_drivers_number_and_its_programs_know_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvml, "minor_number", lambda index: 10 - index)
    monkeypatch.setattr(nvml, "uuid", lambda index: f"GPU-{index}")
    command = Jail(limits=LIMITS, cuda_index=2).command(["/bin/true"], {})
    assert "/dev/nvidia8" in command
    assert "/dev/nvidia2" not in command
    assert cuda_environment(2)["CUDA_VISIBLE_DEVICES"] == "GPU-2"
    assert cuda_environment(None) == {}
