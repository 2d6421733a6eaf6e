"""Files that are complete or not there, what killed runs leave, and one run at a time for one output."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from wayveil.errors import InputError
from wayveil.io import atomic
from wayveil.io.atomic import atomic_path, write_text
from wayveil.io.output_lock import output_lock

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes, locks and signals")

AT_WORK = """
import signal, sys, time
from wayveil.io.atomic import atomic_path

def stop(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, stop)
with atomic_path(sys.argv[1], private=True) as part:
    part.write_text("private")
    print("writing", flush=True)
    time.sleep(600)
"""
HOLDING = """
import sys, time
from wayveil.io.output_lock import output_lock

with output_lock(sys.argv[1]):
    print("holding", flush=True)
    time.sleep(600)
"""


def started(program, target):
    process = subprocess.Popen([sys.executable, "-c", program, str(target)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline().strip() in ("writing", "holding")
    return process


def stopped(process, number):
    process.send_signal(number)
    process.wait(600)
    process.stdout.close()


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir() if not path.name.startswith("xdg"))


@pytest.mark.parametrize(("private", "umask", "mode"), [(True, 0, 0o600), (False, 0o027, 0o640), (False, 0, 0o666)])
def test_modes(tmp_path, private, umask, mode):
    before = os.umask(umask)
    try:
        with atomic_path(tmp_path / "x", private=private) as part:
            assert stat.S_IMODE(part.stat().st_mode) == 0o600  # until it is complete, in either case
            part.write_text("x")
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == mode


def test_a_signal_leaves_nothing(tmp_path):
    process = started(AT_WORK, tmp_path / "x.parquet")
    assert len(names(tmp_path)) == 1
    stopped(process, signal.SIGTERM)
    assert names(tmp_path) == []


def test_leftovers_of_killed_runs_are_removed_and_those_of_running_ones_kept(tmp_path):
    target = tmp_path / "x.parquet"
    process = started(AT_WORK, target)
    stopped(process, signal.SIGKILL)
    (left,) = names(tmp_path)
    assert left.startswith(".x.parquet.") and left.endswith(".part")
    others = [".y.parquet.abcdefgh.part", ".x.parquet.part", ".x.parquet.abcdefgh.part.bak", ".x.parquet.ABCDEFGH.part"]
    for name in others:
        (tmp_path / name).write_text("not of this target")
    at_work = started(AT_WORK, target)
    in_use = set(names(tmp_path)) - {*others, left}
    assert len(in_use) == 1 and left not in names(tmp_path)
    write_text(target, "new", private=False)
    assert set(names(tmp_path)) == {*others, *in_use, "x.parquet"}
    stopped(at_work, signal.SIGKILL)
    write_text(target, "new", private=False)
    assert set(names(tmp_path)) == {*others, "x.parquet"}


def test_a_link_in_the_place_of_a_leftover_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("mine")
    os.symlink("mine", tmp_path / ".x.abcdefgh.part")
    os.mkfifo(tmp_path / ".x.ijklmnop.part")
    write_text(tmp_path / "x", "x", private=True)
    assert (tmp_path / "mine").read_text() == "mine"


def test_the_folder_is_synced_after_the_rename(tmp_path, monkeypatch):
    calls = []
    replace, fsync = os.replace, os.fsync

    def synced(handle):
        calls.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    monkeypatch.setattr(atomic.os, "fsync", synced)
    monkeypatch.setattr(atomic.os, "replace", lambda a, b: (calls.append("rename"), replace(a, b)))
    write_text(tmp_path / "x", "x", private=False)
    assert calls == ["file", "rename", "folder"]


def test_one_run_at_a_time(tmp_path):
    target = tmp_path / "s.parquet"
    process = started(HOLDING, target)
    before = names(tmp_path)
    refusal = rf"another run \(process {process.pid} on .*, since \d{{4}}-.* UTC\)"
    with pytest.raises(InputError, match=refusal), output_lock(target):
        pass
    assert names(tmp_path) == before
    with output_lock(tmp_path / "other.parquet"):
        pass
    stopped(process, signal.SIGKILL)
    assert names(tmp_path) == [".s.parquet.lock"]  # left by the killed run; it does not block
    with output_lock(target), pytest.raises(InputError, match=f"process {os.getpid()} "), output_lock(target):
        pass
    assert names(tmp_path) == []


@pytest.mark.parametrize("content", ["", "[]", "{", json.dumps({"pid": 1, "host": "\x1b[2J", "since": "x"})])
def test_a_lock_file_with_any_content_names_a_holder(tmp_path, content):
    lock = tmp_path / ".x.lock"
    with output_lock(tmp_path / "x"):
        lock.write_text(content)
        with pytest.raises(InputError, match="being written by another run;"), output_lock(tmp_path / "x"):
            pass


def test_many_wait_for_one_lock_and_one_at_a_time_gets_it(tmp_path):
    program = f"""
import os, sys, time
from wayveil.errors import InputError
from wayveil.io.output_lock import output_lock
end = time.monotonic() + 2
while time.monotonic() < end:
    try:
        with output_lock(sys.argv[1]):
            handle = os.open({str(tmp_path / "inside")!r}, os.O_CREAT | os.O_EXCL)
            os.close(handle)
            os.unlink({str(tmp_path / "inside")!r})
    except InputError:
        pass
"""
    workers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "x")]) for _ in range(3)]
    assert [worker.wait(600) for worker in workers] == [0, 0, 0]
    assert names(tmp_path) == []
