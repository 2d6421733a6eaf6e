"""The audit convicts what is known to be broken and acquits what is known to be sound."""

import io
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from stats import ALPHA
from wayveil.audit import audit_method
from wayveil.audit.bounds import epsilon_bound
from wayveil.audit.mechanism_audit import HalfNoise, Neighbours, audited_questions, question_scores, release_scores
from wayveil.audit.method_audit import method_cases
from wayveil.audit.reader_audit import REFUSED, read_bound
from wayveil.audit.selfcheck import ONE, Effort, _readers, make_world, questions_bound, sampler_bound, self_check
from wayveil.core.trajectories import Trajectories, concatenate
from wayveil.errors import InputError
from wayveil.io.readers.points import usable
from wayveil.io.source import open_source
from wayveil.privacy.noise import Noisy, OpenDPNoise, SeededNoise
from wayveil.progress import quiet
from wayveil.questions.catalogue import QUESTIONS
from wayveil.questions.detail_weights import PARTS
from wayveil.questions.end_points import EndPointsDetail
from wayveil.questions.field import Detail
from wayveil.questions.occupancy import OccupancyDetail
from wayveil.questions.question import Features

SURE = 1 - ALPHA


@pytest.fixture(scope="module")
def world():
    return make_world()


def with_canary(world, canary):
    """The simulated city without and with one canary."""
    return Neighbours(world.data, concatenate([world.data, canary]), world.scope)


def test_the_sound_questions_are_acquitted_with_real_noise(world):
    bound = questions_bound(world, ONE, 2_000, OpenDPNoise(), SURE)
    assert 0.3 < bound.epsilon <= 1  # above 0.3: the audit has power, it does not acquit for lack of runs


def test_half_the_noise_is_convicted(world):
    assert questions_bound(world, ONE, 3_000, HalfNoise(SeededNoise(1)), SURE).epsilon > 1


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_half_the_noise_is_convicted_at_other_epsilons(world, epsilon):
    share = Fraction(epsilon)
    assert questions_bound(world, share, 8_000, HalfNoise(SeededNoise(2)), SURE).epsilon > float(share)
    assert questions_bound(world, share, 8_000, SeededNoise(2), SURE).epsilon <= float(share)


def test_a_question_that_breaks_its_norm_is_convicted(world):
    class Twice:
        """Counts each trajectory twice but claims a norm of one."""

        name, shape, resolution = "count", (1,), 1

        def features(self, batch):
            rows = np.arange(len(batch))
            return Features(rows, 0 * rows, np.full(len(rows), 2))

    found = question_scores(
        with_canary(world, world.standing), epsilon=ONE, runs=3_000, noise=SeededNoise(3), questions=[Twice()]
    )
    assert epsilon_bound(*found["count"], confidence=SURE).epsilon > 1


def test_the_canaries_reach_every_question(world):
    names = set()
    for canary in (world.standing, world.crossing):
        names |= set(question_scores(with_canary(world, canary), epsilon=ONE, runs=4, noise=SeededNoise(0)))
    assert names == {name for name, question in QUESTIONS.items() if not question.about_people}


def test_a_detail_that_weighs_more_than_its_parts_is_convicted(world, monkeypatch):
    """Both levels with all the parts: twice the norm that is claimed."""
    names = (OccupancyDetail.name, EndPointsDetail.name)

    def careless(detail, batch):
        found = careful(detail, batch)
        cells = detail.cell_features(batch)
        return replace(found, weight=np.tile(PARTS * cells.weight, 2))

    def bounds():
        questions = [question for question in audited_questions(world.scope) if question.name in names]
        found = question_scores(
            with_canary(world, world.standing), epsilon=ONE, runs=3_000, noise=SeededNoise(3), questions=questions
        )
        return [epsilon_bound(*found[name], confidence=SURE).epsilon for name in names]

    assert all(0.3 < bound <= 1 for bound in bounds())
    careful = Detail.features
    monkeypatch.setattr(Detail, "features", careless)
    assert all(bound > 1 for bound in bounds())


def test_whole_releases_stay_within_epsilon_and_half_noise_does_not(world):
    neighbours = with_canary(world, world.standing)
    right, half = (
        np.abs(np.concatenate(release_scores(neighbours, epsilon=ONE, runs=12, noise=noise)))
        for noise in (SeededNoise(4), HalfNoise(SeededNoise(4)))
    )
    assert 0 < right.max() <= 1 + 1e-9
    assert half.max() <= 2 + 1e-9
    assert half.mean() > 1.4 * right.mean()


def test_noise_that_knows_the_data_is_found_in_the_whole_release(world):
    class Careless(SeededNoise):
        """The count without noise: everything after it is as it should be."""

        def laplace(self, sums, sensitivity, epsilon):
            noisy = super().laplace(sums, sensitivity, epsilon)
            return noisy if len(sums) > 1 else Noisy(sums, 1e-3, epsilon, False)

    zero, one = release_scores(with_canary(world, world.standing), epsilon=ONE, runs=24, noise=Careless(5))
    assert epsilon_bound(zero, one, confidence=0.9).epsilon > 1


@pytest.mark.parametrize(("mistake", "convicted"), [("box from data", True), ("count from data", True), (None, False)])
def test_box_and_count_from_the_data(world, mistake, convicted):
    bound = sampler_bound(world, 120, SeededNoise(6), 0.999 if convicted else SURE, mistake)
    assert (bound.epsilon > 1) is convicted


def test_any_method_can_be_audited(world):
    rng = np.random.default_rng(7)
    both = world.data, concatenate([world.data, world.far])

    def leaky(data):
        return [float(len(data)) + 0.1 * rng.normal()]

    def deaf(data):
        return [rng.normal()]

    assert audit_method(leaky, *both, 100, names=("size",)).epsilon > 1
    assert audit_method(deaf, *both, 100).epsilon == 0.0


@pytest.mark.parametrize("name", ["dpapt", "ldptrace", "coordinate-noise"])
def test_methods_are_convicted_in_the_published_mode_only(world, name):
    cases = list(method_cases(world, 60, 0.999, SeededNoise(0), chosen=(name,)))
    assert [(case.method, case.verdict) for case in cases] == [
        (f"{name}, default", "acquitted"), (f"{name}, published", "convicted")
    ]  # fmt: skip
    assert all(case.right for case in cases) and cases[1].bound > 1


def test_one_method_can_be_attacked_alone():
    effort = Effort(questions=1, releases=1, samples=1, published=1)
    result = self_check(effort=effort, noise=SeededNoise(0), methods=("wayveil.baselines:privtrace",))
    assert [case.method.rpartition(", ")[2] for case in result.cases] == ["default", "published"]
    assert result.passed and result.verdict == "Every verdict is as claimed."
    wrong = replace(result, cases=(replace(result.cases[0], verdict="convicted"), result.cases[1]))
    assert "audit" not in wrong.verdict and wrong.cases[0].method in wrong.verdict
    with pytest.raises(InputError, match="choose from"):
        self_check(methods=("magic",))


def test_self_check_lists_every_method(world):
    effort = Effort(questions=1_000, releases=4, samples=40, published=88)
    result = self_check(effort=effort, noise=SeededNoise(8), confidence=0.99)
    assert result.passed and result.verdict.startswith("The audit works")
    listed = {(case.method, case.verdict) for case in result.cases}
    assert {
        ("readers, one trajectory more", "acquitted"),
        ("readers, one user more", "acquitted"),
        ("readers, ids subtracted", "convicted"),
        ("published DPE, epsilon 0.1", "convicted"),
        ("published DPE, epsilon 1", "convicted"),
        ("sound method, each question alone", "acquitted"),
        ("sound method, whole release", "acquitted"),
        ("sound method, one user with all trips", "acquitted"),
        ("sound method with half the noise", "convicted"),
        ("noisy grid, box from the data", "convicted"),
        ("noisy grid, count from the data", "convicted"),
        ("noisy grid, public box, noisy count", "acquitted"),
    } == listed
    json.dumps(result.to_dict(), allow_nan=False)
    wrong = replace(result, cases=(replace(result.cases[0], verdict="convicted"), *result.cases[1:]))
    assert not wrong.passed and f"wrong about {wrong.cases[0].method!r}" in wrong.verdict


def earlier_assemble(points, options, origin):
    """The grouping of an earlier version: the sign of a difference, which overflows, says whether rows need sorting."""
    points = usable(points, options, origin)
    code, t_utc = points.label.code, points.t_utc
    if len(code) > 1:
        step, sooner = np.diff(code), np.diff(t_utc) < 0
        if (step < 0).any() or (sooner & (step == 0)).any():
            points = points.take(np.lexsort((t_utc, code)))
    code = points.label.code
    starts = np.flatnonzero(np.r_[True, code[1:] != code[:-1]])[: len(code)]
    return Trajectories(np.r_[starts, len(code)], points.lon, points.lat, points.t_utc)


def test_the_earlier_grouping_is_convicted_when_it_is_put_back(world, monkeypatch):
    sound = read_bound(world.data, world.scope, "trajectory")
    assert sound.bound == 1.0 and sound.pairs == 45
    monkeypatch.setattr("wayveil.io.readers.dispatch.assemble", earlier_assemble)
    monkeypatch.setattr("wayveil.io.readers.parquet_stream.assemble", earlier_assemble)
    monkeypatch.setattr("wayveil.io.readers.grouping.assemble", earlier_assemble)
    found = read_bound(world.data, world.scope, "trajectory")
    assert found.bound > 10 and "rows in turn" in found.seen
    one = next(_readers(world, quiet))
    assert one.verdict == "convicted" and not one.right


def test_a_refusal_of_one_of_two_files_is_convicted(world):
    def strict(data, unit):
        return open_source(data)

    assert read_bound(world.data, world.scope, "trajectory", reader=strict).bound == REFUSED


def test_self_check_fails_when_the_audit_is_wrong(monkeypatch):
    import wayveil.audit.selfcheck as module
    from wayveil.cli.audit import register

    sound = module.Case("m", 1.0, 1.0, 0.5, "acquitted", "acquitted", 10, "nothing")
    app = typer.Typer()
    register(app)
    app.command("other")(lambda: None)
    for cases, code in (((sound,), 0), ((sound, replace(sound, expected="convicted")), 1)):
        monkeypatch.setattr(module, "self_check", lambda *a, cases=cases, **k: module.SelfCheck(cases, 0.999, 1.0))
        done = CliRunner().invoke(app, ["audit", "self-check", "--quick", "--json"])
        assert done.exit_code == code
        methods = json.loads(done.stdout)["methods"]
        assert methods[0]["verdict"] == "acquitted" and methods[0]["bound"] == 0.5
    assert "acquitted" in CliRunner().invoke(app, ["audit", "self-check", "--quick"]).output


def test_the_table_fits_a_terminal_and_names_every_case():
    from rich.console import Console

    from wayveil.audit.selfcheck import Case, SelfCheck
    from wayveil.audit.tables import self_check_table

    long = "likelihood ratio [of] everything above 0, more often with the canary (88.5% against 11.8%)"
    cases = (
        Case("sound method with half the noise", 1, 1, 1.95, "convicted", "convicted", 40_000, long),
        Case("noisy grid, public box, noisy count", 1, 1, 0.1, "acquitted", "acquitted", 500, "nothing"),
    )
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(self_check_table(SelfCheck(cases, 0.999, 1.0)))
    text = console.export_text()
    assert len(text.splitlines()) < 14
    assert "2 × 40000" in text and "ratio [of] everything" in text and "noisy count: nothing" in text
