"""One file: honest samples pass, copies and the published method fail; the command and its JSON."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from stats import ALPHA
from wayveil.audit import audit_synthetic, centroid_error_m, linkage, membership, own_linkage, reconstruct_last
from wayveil.audit.attacks import nearest, shapes
from wayveil.cli.audit import register
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.dpe.coordinates import synthesize_published
from wayveil.dpe.method import options_of
from wayveil.errors import InputError
from wayveil.io.files import write
from wayveil.simulate import scope_toml, simulate_city, simulate_trajectories

SURE = 1 - ALPHA


@pytest.fixture(scope="module")
def city():
    return simulate_city(0, size_km=(3, 3))


@pytest.fixture(scope="module")
def sides(city):
    """(real, holdout): one population, split at random."""
    everybody = simulate_trajectories(city, 800, seed=3)
    everybody = Trajectories(everybody.offsets, everybody.lon, everybody.lat, everybody.t_utc)
    order = np.random.default_rng(0).permutation(800)
    return select(everybody, order[:400]), select(everybody, order[400:])


@pytest.fixture(scope="module")
def fresh(city):
    made = simulate_trajectories(city, 380, seed=9)
    return Trajectories(made.offsets, made.lon, made.lat, made.t_utc)


def by_name(report):
    return {test.test: test for test in report.tests}


def test_nearest_is_brute_force(city, sides):
    a, b = (shapes(side, city.scope) for side in sides)
    apart = np.linalg.norm(a[:, None] - b[None], axis=2)
    index, metres = nearest(a, b)
    assert np.allclose(metres, apart.min(axis=1), atol=1e-6)
    assert np.array_equal(index, apart.argmin(axis=1))
    own = np.linalg.norm(a[:, None] - a[None], axis=2)
    np.fill_diagonal(own, np.inf)
    assert np.allclose(nearest(a, a, skip_own=True)[1], own.min(axis=1), atol=1e-6)


def test_an_honest_sample_passes_every_attack(city, sides, fresh):
    report = audit_synthetic(sides[0], fresh, city.scope, epsilon=0.5, holdout=sides[1], confidence=SURE)
    assert report.passed and "No attack" in report.verdict
    assert {"nearest-neighbour linkage", "exact copies", "linkage against the hold-out", "membership inference",
            "below the floor"} <= set(by_name(report))  # fmt: skip


@pytest.mark.parametrize("size", [20, 50, 150])
def test_a_small_honest_sample_is_not_below_the_floor(city, sides, size):
    everybody = concatenate(sides)
    order = np.random.default_rng(size).permutation(len(everybody))
    halves = select(everybody, order[size:]), select(everybody, order[:size])
    report = audit_synthetic(*halves, city.scope, confidence=SURE)
    assert by_name(report)["below the floor"].passed and not report.failed


def test_a_small_honest_sample_is_not_said_to_pass(city, sides, fresh):
    few = audit_synthetic(sides[0], select(fresh, np.arange(50)), city.scope)
    assert few.too_few and not few.failed and not few.passed and few.to_dict()["passed"] is None
    assert few.verdict.startswith("The sample is too small to judge: with 50 trajectories, 14%")
    assert {few.word(test) for test in few.tests if test.passed} == {"too few"} and "too few" in str(few)
    assert "too few" in repr(few)
    copied = audit_synthetic(sides[0], select(sides[0], np.arange(50)), city.scope)
    assert "Do not publish" in copied.verdict and copied.to_dict()["passed"] is False
    assert audit_synthetic(sides[0], select(fresh, np.arange(150)), city.scope).passed


@pytest.mark.parametrize("size", [20, 200])
def test_a_copied_part_of_the_data_fails(city, sides, size):
    part = select(sides[0], np.random.default_rng(1).permutation(400)[:size])
    tests = by_name(audit_synthetic(sides[0], part, city.scope))
    assert tests["exact copies"].passed is False
    assert tests["below the floor"].passed is (size == 20)  # of a twentieth it makes no difference who was in it


def test_copies_fail_every_attack(city, sides):
    report = audit_synthetic(sides[0], sides[0], city.scope, epsilon=0.5, holdout=sides[1], confidence=SURE)
    failed = {test.test for test in report.tests if test.passed is False}
    assert failed == {"nearest-neighbour linkage", "exact copies", "linkage by position", "centroid reconstruction",
                      "linkage against the hold-out", "membership inference", "below the floor"}  # fmt: skip
    assert not report.passed and "Do not publish" in report.verdict
    assert {"equal count", "equal box"} <= set(by_name(report))


def test_a_few_copies_among_honest_trajectories_are_found(city, sides, fresh):
    mixed = concatenate([fresh, select(sides[0], np.arange(40))])
    tests = by_name(audit_synthetic(sides[0], mixed, city.scope))
    assert tests["exact copies"].passed is False
    assert by_name(audit_synthetic(sides[0], fresh, city.scope))["exact copies"].passed is True


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_published_method_fails(city, sides, epsilon):
    data = select(sides[0], np.arange(40))
    options = options_of(epsilon, iterations=20, precision="float64")
    made = synthesize_published(data, city.scope, options).trajectories
    tests = by_name(audit_synthetic(data, made, city.scope, epsilon=epsilon, holdout=sides[1]))
    assert tests["linkage by position"].low > 0.7
    assert tests["membership inference"].low > tests["membership inference"].allowed
    assert tests["membership inference"].allowed == pytest.approx(np.tanh(epsilon / 2))
    assert tests["linkage against the hold-out"].passed is False


def test_linkage_and_membership_of_halves(city, sides, fresh):
    real, held, made = (shapes(part, city.scope) for part in (*sides, fresh))
    assert linkage(real, made, held, 0.5, SURE).share.low <= 0.5 <= linkage(real, made, held, 0.5, SURE).share.high
    assert linkage(real, real[:200], held, 0.5).share.value > 0.95
    assert membership(real, held, made, SURE).low <= 0 <= membership(real, held, made, SURE).high
    shuffled = np.random.default_rng(1).permutation(len(real))
    assert own_linkage(real, real).share.value == 1.0
    assert own_linkage(real, real[shuffled]).share.value < 0.05
    with pytest.raises(InputError):
        own_linkage(real, made)


def test_the_sum_reveals_the_last_record(city, sides):
    data = select(sides[0], np.arange(40))
    made = synthesize_published(data, city.scope, options_of(0.01, iterations=20, precision="float64"))
    from wayveil.dpe.align import align
    from wayveil.dpe.coordinates import frame_of, to_points

    records = align(to_points(data, city.scope, frame_of(data, city.scope)), data.offsets).points
    error_m, guess_m = centroid_error_m(records, made.run.points)
    assert error_m < 1e-4 < 100 < guess_m
    assert np.allclose(reconstruct_last(records[:-1], made.run.points)[:, :2], records[-1][:, :2], atol=1e-4)
    moved = made.run.points + 100.0  # a method that does not keep the sum gives nothing away
    assert centroid_error_m(records, moved)[0] > 1000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s, f: ((select(s[0], np.arange(5)), f), {}), "at least 20 real"),
        (lambda s, f: ((s[0], f), {"epsilon": -1.0}), "epsilon="),
        (lambda s, f: ((s[0], f), {"epsilon": float("nan")}), "epsilon="),
        (lambda s, f: ((s[0], f), {"confidence": 1.0}), "confidence="),
        (lambda s, f: ((s[0], f), {"holdout": select(s[1], np.arange(3))}), "holdout="),
        (lambda s, f: ((s[0], select(f, np.arange(0))), {}), "one synthetic"),
    ],
)
def test_bad_input_is_one_sentence(city, sides, fresh, change, words):
    files, options = change(sides, fresh)
    with pytest.raises(InputError, match=words):
        audit_synthetic(*files, city.scope, **options)


@pytest.fixture
def run(tmp_path, city, sides, fresh, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, part in (("real", sides[0]), ("held", sides[1]), ("made", fresh)):
        write(part, f"{name}.parquet")
    (tmp_path / "city.toml").write_text(scope_toml(city))
    app = typer.Typer()
    register(app)
    app.command("other")(lambda: None)
    return lambda *words: CliRunner().invoke(app, ["audit", *words])


def test_the_command_prints_a_table_and_writes_json_for_the_report(run, tmp_path):
    from wayveil.report.internal import make_internal

    done = run("real.parquet", "made.parquet", "--scope", "city.toml", "--epsilon", "1", "--holdout", "held.parquet",
               "-o", "audit.json")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "Not for publication" in done.output and "membership" in done.output and "No attack" in done.output
    written = json.loads((tmp_path / "audit.json").read_text())
    assert written["passed"] is True and "Not for publication" in written["note"]
    shown = make_internal(None, written).audit
    assert shown.passed is True and shown.verdict == written["verdict"]
    assert len(shown.rows) == len(written["tests"]) and shown.columns[0] == "test"
    assert (tmp_path / "audit.json").stat().st_mode & 0o077 == 0


def test_the_command_as_json_and_by_its_long_name(run):
    short = run("real.parquet", "real.parquet", "--scope", "city.toml", "--json")
    assert short.exit_code == 0
    assert json.loads(short.stdout)["passed"] is False
    assert run("files", "real.parquet", "real.parquet", "--scope", "city.toml", "--json").stdout == short.stdout
    assert "self-check" in run("--help").output and "REAL" in run("files", "--help").output


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_a_failed_strict_audit_has_its_own_exit_code(run, tmp_path, json_too):
    failed = run("real.parquet", "real.parquet", "--scope", "city.toml", "--strict", "-o", "audit.json", *json_too)
    assert failed.exit_code == 4 and "Do not publish" in failed.stdout
    assert json.loads((tmp_path / "audit.json").read_text())["passed"] is False
    assert run("real.parquet", "made.parquet", "--scope", "city.toml", "--strict", *json_too).exit_code == 0


def test_a_refused_audit_writes_nothing(run, tmp_path):
    done = run("real.parquet", "nowhere.parquet", "--scope", "city.toml", "-o", "audit.json")
    assert isinstance(done.exception, InputError) and not (tmp_path / "audit.json").exists()


def test_the_command_overwrites_only_an_earlier_result(run, tmp_path, monkeypatch):
    import wayveil.audit.file_audit

    words = ("real.parquet", "made.parquet", "--scope", "city.toml", "--holdout", "held.parquet", "-o")
    (tmp_path / "thesis.json").write_text('{"title": "mine"}')
    (tmp_path / "large.json").write_text("[" + "0," * (6 << 20))
    (tmp_path / "link.json").symlink_to("real.parquet")
    inputs = ("real.parquet", "made.parquet", "held.parquet", "city.toml")
    with monkeypatch.context() as early:
        early.setattr(wayveil.audit.file_audit, "audit_synthetic", lambda *_, **__: pytest.fail("the work had begun"))
        whys = dict.fromkeys(inputs, "is one of the inputs") | {"link.json": "is a symbolic link"}
        whys |= dict.fromkeys(("thesis.json", "large.json"), "is not an earlier result")
        for name, why in whys.items():
            before = (tmp_path / name).read_bytes()
            done = run(*words, name)
            assert isinstance(done.exception, InputError) and why in str(done.exception), done.output
            assert (tmp_path / name).read_bytes() == before
        assert "folder" in str(run(*words, ".").exception)
    (tmp_path / "audit.json").touch()
    for _ in range(2):  # an empty file has nothing to lose, and its own result it may replace
        assert run(*words, "audit.json").exit_code == 0
    assert json.loads((tmp_path / "audit.json").read_text())["passed"] is True
