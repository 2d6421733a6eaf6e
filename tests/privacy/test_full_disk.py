"""Disks that fill up and folders that cannot be written: one clear sentence, nothing lost, nothing half-written."""

import os
import shutil
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from real_components import ordinary_user_prefix
from wayveil.privacy.ledger import Ledger, Spend
from wayveil.privacy.unit import Unit

TRIP = Unit.trajectory()

pytestmark = [pytest.mark.needs("linux"), pytest.mark.usefixtures("untraced")]  # limits on the size of files
SCOPE = 'name = "small"\nsouth = 30.0\nwest = -40.0\nnorth = 30.04\neast = -39.96\n'
MAIN = "from wayveil.cli.main import main; main()"
MEASURE = "measure rides.parquet --dataset rides --scope small.toml --epsilon 1 --unit trajectory --ledger l.sqlite -o"


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    n = 3000
    columns = {"traj_id": np.arange(n) // 10, "lat": random.uniform(30.01, 30.02, n), "lon": -39.98 + np.zeros(n)}
    pq.write_table(pa.table({**columns, "t": 1_700_000_000 + 20 * np.arange(n)}), tmp_path / "rides.parquet")
    (tmp_path / "small.toml").write_text(SCOPE)
    return tmp_path


def said(folder, text, limit=None, bound=False):
    """Exit code and message of a command, under a limit on the size of files, or bound by modes even as root."""
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); " if limit else ""
    done = subprocess.run(
        [*(ordinary_user_prefix() if bound else []), sys.executable, "-c", limited + MAIN, *text.split()], cwd=folder,
        capture_output=True, text=True, timeout=600,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state"), "XDG_CACHE_HOME": str(folder / "cache")},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""


def spent(folder):
    return sum(account.spent for account in Ledger(folder / "l.sqlite").datasets())


def test_no_room_for_the_release_is_known_before_the_spend(folder):
    code, message = said(folder, f"{MEASURE} r.json", limit=200_000)
    assert code == 2 and "Cannot write to the folder of 'r.json'" in message, message
    assert not (folder / "r.json").exists() and spent(folder) == 0


def test_outputs_that_do_not_fit(folder):
    assert said(folder, f"{MEASURE} r.json")[0] == 0
    before = sorted(path.name for path in folder.iterdir())
    for text, output in (
        ("convert rides.parquet", "c.csv"),
        ("convert rides.parquet", "c.gpx"),
        ("synthesize r.json -n 300", "s.csv"),
        ("synthesize r.json -n 300", "s.parquet"),
    ):
        code, message = said(folder, f"{text} -o {output}" if "-n" in text else f"{text} {output}", limit=2_000)
        assert code == 2 and "File too large" in message and "Detail" not in message, (text, message)
        shutil.rmtree(folder / "s.parquet.parts", ignore_errors=True)  # there to be continued
        assert sorted({path.name for path in folder.iterdir()} - {"cache"}) == before, text


def set_modes(folder, folders, files):
    for path in (folder, *folder.rglob("*")):
        os.chmod(path, folders if path.is_dir() else files)


@pytest.mark.needs("file permissions")
def test_read_only_folders(folder):
    assert said(folder, f"{MEASURE} r.json")[0] == 0
    Ledger(folder / "l.sqlite").allow("rides", Fraction(5), "more")
    set_modes(folder, 0o500, 0o400)
    try:
        code, message = said(folder, f"{MEASURE} r2.json", bound=True)
        assert code == 2 and "Permission denied" in message, message
        code, message = said(folder, f"{MEASURE} /dev/shm/wayveil-{os.getpid()}.json", bound=True)
        assert code == 2 and "ledger" in message and "Permission denied" in message, message
        code, message = said(folder, "synthesize r.json -n 10 -o s.csv", bound=True)
        assert code == 2 and "Permission denied" in message, message
    finally:
        set_modes(folder, 0o700, 0o600)
    assert spent(folder) == 1 and not (folder / "s.csv").exists()


@pytest.mark.needs("file permissions")
def test_a_folder_that_becomes_read_only(folder):
    """The ledger can be written, its journal next to it cannot."""
    ledger = Ledger(folder / "l.sqlite")
    ledger.spend("rides", [Spend("a", Fraction(1, 2))], total_if_new=Fraction(2), unit=TRIP)
    os.chmod(folder, 0o500)
    try:
        code, message = said(folder, "ledger allow rides --total 3 --reason more --ledger l.sqlite", bound=True)
        assert code == 2 and "cannot be written" in message, message
    finally:
        os.chmod(folder, 0o700)
    assert ledger.datasets()[0].total == 2
