"""Who listens to progress: logs and notebooks."""

import os
import re
import subprocess
import sys
import time
import types

import pytest

from wayveil.progress import EVERY_S, FIRST_S, part, plain_lines, show_progress, write_until_over


def test_log_lines_appear_during_a_long_stage():
    lines = []
    with plain_lines(lines.append, first_s=0.02, every_s=0.02) as listen:
        time.sleep(0.05)
        assert lines == []  # nothing has begun
        listen("drawing", 0.25)
        until = time.monotonic() + 300
        while len(lines) < 3 and time.monotonic() < until:
            time.sleep(0.01)
    assert len(lines) >= 3 and all(line.startswith("drawing: 25% (") and line.isprintable() for line in lines)
    after = len(lines)
    time.sleep(0.05)
    assert len(lines) == after


class Clock:
    """Time that passes only while somebody waits for it, until the work is over."""

    def __init__(self, over_s):
        self.now_s, self.over_s = 1_000.0, 1_000.0 + over_s

    def __call__(self):
        return self.now_s

    def over_within(self, seconds):
        self.now_s = min(self.now_s + seconds, self.over_s)
        return self.now_s >= self.over_s


@pytest.mark.parametrize(
    ("begins_s", "over_s", "told_s"), [(0, 1.9, []), (0, 2.5, [2]), (0, 33, [2, 12, 22, 32]), (5, 20, [6, 16])]
)
def test_the_first_line_comes_after_two_seconds_and_then_one_every_ten(begins_s, over_s, told_s):
    clock, lines = Clock(over_s), []

    def now():
        return ("drawing" if clock() >= 1_000.0 + begins_s else "", 0.5)

    write_until_over(now, lines.append, clock.over_within, clock, FIRST_S, EVERY_S)
    assert lines == [f"drawing: 50% ({seconds} s)" for seconds in told_s]


def test_small_runs_report_progress_step_by_step():
    import wayveil as wv
    from wayveil.io.scope_files import parse_scope
    from wayveil.privacy.noise import SeededNoise
    from wayveil.simulate import scope_toml, simulate_city, simulate_trajectories

    city = simulate_city(size_km=(3, 3))
    scope, real = parse_scope(scope_toml(city), "town"), simulate_trajectories(city, n=60)
    heard = []
    release = wv.measure(real, scope, epsilon=5, unit="trajectory", noise=SeededNoise(1))
    made = wv.synthesize(release, n=30, seed=1, progress=lambda stage, done: heard.append((stage, done)))
    wv.evaluate(real, made, scope, metrics=("length",), progress=lambda stage, done: heard.append((stage, done)))
    for stage, most in (("balancing routes", 0.3), ("drawing trajectories", 0.1), ("evaluate", 0.5)):
        told = [done for name, done in heard if name == stage]
        assert told == sorted(told) and told[0] == 0.0 and told[-1] == 1.0 and 0 < told[1] <= most, (stage, told)


def test_lines_stop_when_the_work_fails():
    lines = []

    def fail(listen):
        listen("a", 0.0)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), plain_lines(lines.append, first_s=0.01, every_s=0.01) as listen:
        fail(listen)
    count = len(lines)
    time.sleep(0.05)
    assert len(lines) == count


def test_a_part_of_a_stage():
    heard = []
    tell = part(lambda stage, done: heard.append((stage, done)), "drawing", 0.5, 0.75)
    for done in (0.0, 0.5, 1.0, 2.0):
        tell("any", done)
    assert heard == [("drawing", 0.5), ("drawing", 0.625), ("drawing", 0.75), ("drawing", 0.75)]


def test_show_progress_without_a_terminal_is_sparse():
    code = "from wayveil.progress import show_progress\nfor k in range(1000): show_progress('drawing', k / 999)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "" and said.stderr == "drawing: 0%\n"


class ZMQInteractiveShell:
    execution_count = 7


class Handle:
    def __init__(self, shown):
        self.shown = shown

    def update(self, bundle, raw):
        self.shown[-1] = bundle["text/plain"]


def test_show_progress_in_a_notebook_keeps_one_line_a_cell(monkeypatch, capsys):
    shown, kernel = [], ZMQInteractiveShell()

    def display(bundle, raw, display_id):
        shown.append(bundle["text/plain"])
        assert re.fullmatch(r'<div><progress value="[01]\.\d+" max="1" style="width:16em"></progress> [^<]+</div>',
                            bundle["text/html"])  # fmt: skip
        return Handle(shown)

    shell, pieces = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    shell.get_ipython, pieces.display = lambda: kernel, display
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", pieces)
    for stage in ("reading", "drawing"):
        for k in range(101):
            show_progress(stage, k / 100)
    assert shown == ["drawing: 100%"]
    kernel.execution_count = 8
    show_progress("writing", 1.0)
    assert shown == ["drawing: 100%", "writing: 100%"]
    assert capsys.readouterr() == ("", "")


CHILD = (
    "import sys, time\nfrom wayveil.cli.console import progress_bar\n"
    "with progress_bar() as listen:\n    for k in range(5):\n        listen('drawing', k / 4)\n"
    "        time.sleep(0.15)\nprint('over')\n"
)


@pytest.mark.needs("posix")  # pseudo-terminals
@pytest.mark.parametrize(
    ("more", "draws"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm-color", "JPY_PARENT_PID": "1"}, False),
        ({"TERM": "xterm-color", "GIT_PAGER": "cat", "FORCE_COLOR": "1"}, False),
    ],
)
def test_only_a_real_terminal_is_drawn_over(more, draws):
    import pty

    parent, child = pty.openpty()
    kept = {k: v for k, v in os.environ.items() if k not in ("JPY_PARENT_PID", "GIT_PAGER", "TERM", "FORCE_COLOR")}
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=child, stderr=child, env={**kept, **more}) as process:
        os.close(child)
        said = b""
        while True:
            try:
                piece = os.read(parent, 4096)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            said += piece
    os.close(parent)
    assert process.returncode == 0 and b"over" in said
    assert (b"\x1b" in said) == draws, said
