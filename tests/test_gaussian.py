"""The Gaussian mode from end to end: clipped contributions, their noise, their cost, and what a release says of it."""

import json
import math
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import cache
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import log_ndtr

from stats import ALPHA
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.engine.units import UserUnits
from wayveil.errors import ReleaseError
from wayveil.measurement import measure
from wayveil.measurement.gaussian import centre_is_clear
from wayveil.privacy.noise import OpenDPNoise, SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.privacy.zcdp import LATTICE_VARIANCE, rho_for
from wayveil.questions.centre import guessed_shares
from wayveil.questions.question import size_of
from wayveil.questions.shares import measurement_cost
from wayveil.release import release_to_json
from wayveil.release.describe import describe
from wayveil.release.document import release_from_json
from wayveil.simulate import simulate_city, simulate_trajectories

CITY = simulate_city(0, size_km=(4, 4))
FIRST = simulate_trajectories(CITY, 300, seed=3)
DATA = Trajectories(
    FIRST.offsets, FIRST.lon, FIRST.lat, FIRST.t_utc, np.random.default_rng(0).integers(0, 15, len(FIRST))
)
"""Fifteen users of about twenty trajectories, so that questions are centred."""
UNITS = {"trajectory": {"unit": "trajectory"}, "user": {"unit": "user", "max_per_user": 200}}
each_unit = pytest.mark.parametrize("unit", UNITS)


class Recorder(SeededNoise):
    """Seeded noise, or earlier answers again; records each exact sum and its bound."""

    def __init__(self, before=None):
        super().__init__(1)
        self.asked, self.given, self._before = [], [], before

    def gaussian(self, sums, l2_sensitivity, rho):
        self.asked.append((sums.tolist(), l2_sensitivity))
        made = super().gaussian(sums, l2_sensitivity, rho) if self._before is None else self._before[len(self.given)]
        self.given.append(made)
        return made


def quiet(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measure(data, CITY.scope, delta="1e-6", accept_low_signal=True, **options)


@cache
def seeded(unit):
    """One release with second draws at user level."""
    return with_second_draws(unit)


def with_second_draws(unit):
    with mock.patch("wayveil.measurement.gaussian.LEAST_CENTRED", 0.0):
        return quiet(DATA, epsilon=20, noise=SeededNoise(1), **UNITS[unit])


def moved_too_far(data, extra, unit, epsilon="1"):
    """Which draws of the whole measurement the extra unit moves by more than the noise was scaled to.

    Questions are centred, however few units there are.
    """
    notes = Recorder()
    with mock.patch("wayveil.measurement.gaussian.LEAST_CENTRED", 0.0):
        quiet(data, epsilon=epsilon, noise=notes, **UNITS[unit])
        replay = Recorder(notes.given)
        quiet(concatenate([data, extra]), epsilon=epsilon, noise=replay, **UNITS[unit])
    assert len(notes.asked) == len(replay.asked) > 20
    far = []
    for number, ((old, bound), (new, same)) in enumerate(zip(notes.asked, replay.asked, strict=True)):
        assert bound == same and len(old) == len(new)
        if sum((a - b) ** 2 for a, b in zip(new, old)) > int(bound) ** 2:
            far.append(number)
    return far


def someone(kind, user):
    """An additional unit that adds as much as it can."""
    scope = CITY.scope
    many = {"trajectory": 1, "user": 200}[kind]
    lon, lat = (scope.west + scope.east) / 2, (scope.south + scope.north) / 2
    t_utc = np.tile([0.0, 600.0, 1200.0], many) + DATA.t_utc[0]
    return Trajectories(3 * np.arange(many + 1), np.full(3 * many, lon), np.full(3 * many, lat), t_utc, [user] * many)


@each_unit
@pytest.mark.parametrize("epsilon", ["0.2", "1", "20"])
def test_one_unit_moves_every_draw_by_at_most_its_bound(unit, epsilon):
    """The same noisy answers so far, with and without the unit: norms, sizes and bounds are then the same."""
    extra = select(DATA, np.arange(3)) if unit == "user" else select(DATA, np.arange(1))
    extra = Trajectories(extra.offsets, extra.lon, extra.lat, extra.t_utc, [99] * len(extra))
    assert not moved_too_far(DATA, extra, unit, epsilon)
    assert not moved_too_far(DATA, someone(unit, 99), unit, epsilon)


def test_a_mechanism_that_clips_trajectories_instead_of_users_is_caught(monkeypatch):
    grouped = UserUnits._buckets

    def ungrouped(self, segments):
        for share, batch, _ in grouped(self, segments):
            yield share, batch, np.arange(len(batch))

    monkeypatch.setattr(UserUnits, "_buckets", ungrouped)
    assert moved_too_far(DATA, someone("user", 99), "user")


def draws(release):
    """(bound, σ, answer) of every draw of noise: sums, second sums, and the histograms of norms before them."""
    found = []
    for answer in release.answers:
        parts = [(answer.scale, answer.clipping)]
        if answer.centred is not None:
            parts.append((answer.centred.scale, answer.centred.clipping))
        for scale, clipping in parts:
            found.append((clipping.bound, scale, answer))
            if clipping.norms_scale:
                found.append((1, clipping.norms_scale, answer))
    return found


def delta_of(rho, epsilon):
    """The exact curve of the Gaussian mechanism (Balle and Wang 2018), without dp-accounting."""
    mu = math.sqrt(2 * rho)
    log_first, log_second = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return math.exp(log_first) * -math.expm1(log_second - log_first)


@each_unit
def test_independent_accountants_agree(unit):
    from dp_accounting import GaussianDpEvent
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    release = seeded(unit)
    costs = [(bound**2 / (scale**2 - LATTICE_VARIANCE) / 2, answer) for bound, scale, answer in draws(release)]
    assert any(answer.centred is not None for answer in release.answers) == (unit == "user")
    rho = sum(cost for cost, _ in costs)
    assert 0.999e-6 < delta_of(rho, 20.0) <= 1e-6
    accountant = PLDAccountant()
    for cost, _ in costs:
        accountant.compose(GaussianDpEvent(1 / math.sqrt(2 * cost)))
    assert 0.99e-6 < accountant.get_delta(20.0) < 1.01e-6
    # Rényi accounting is sound for the same draws, but looser.
    renyi = RdpAccountant()
    for cost, _ in costs:
        renyi.compose(GaussianDpEvent(1 / math.sqrt(2 * cost)))
    assert 1.5e-6 < renyi.get_delta(20.0) < 1e-4
    # Each line of the ledger is its part of ρ.
    for answer in release.answers:
        whole = sum(cost for cost, other in costs if other is answer)
        assert whole / rho == pytest.approx(float(answer.epsilon / release.epsilon), rel=1e-6)
    assert sum(cost for _, cost in release.ledger) == 20


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "3", "30"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-10"])
def test_the_whole_delta_is_used_and_never_more(epsilon, delta):
    rho = float(rho_for(Fraction(epsilon), Fraction(delta)))
    assert delta_of(rho, float(epsilon)) <= float(delta) < delta_of(rho * 1.001, float(epsilon))
    # More than the conversion that holds for every zCDP mechanism.
    log_inverse = -math.log(float(delta))
    assert rho > (math.sqrt(log_inverse + float(epsilon)) - math.sqrt(log_inverse)) ** 2


@pytest.mark.parametrize("moved", [(1, 0), (2, 1), (3, 3), (5,) * 4, (20, 0), (14, 14)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_integer_noise_on_vectors_keeps_to_the_curve(moved, epsilon):
    """δ of discrete Gaussians by summation over the whole distribution of the privacy loss, not by a bound."""
    bound = math.sqrt(sum(one * one for one in moved))
    rho = float(rho_for(Fraction(str(epsilon)), Fraction("1e-3")))
    variance = bound**2 / (2 * rho) + LATTICE_VARIANCE
    reach = np.arange(-int(9 * math.sqrt(variance)), int(9 * math.sqrt(variance)) + 1)
    weights = np.exp(-(reach**2) / (2 * variance))
    weights /= weights.sum()
    # The loss is (‖w‖² + 2⟨w, Z⟩) / 2σ²; ⟨w, Z⟩ is a sum of independent integers.
    sums = np.ones(1)
    for one in moved:
        if one:
            spread = np.zeros((len(reach) - 1) * one + 1)
            spread[::one] = weights
            sums = np.convolve(sums, spread)
    inner = np.arange(len(sums)) - len(sums) // 2
    loss = (bound**2 + 2 * inner) / (2 * variance)
    delta = float((sums * np.maximum(-np.expm1(epsilon - loss), 0)).sum())
    assert delta <= 1e-3
    assert bound < 19 or delta > 0.8e-3  # and the part of the variance that is not counted is small


def test_the_noise_has_the_variance_that_was_paid_for():
    """Bounds and scales of one release, 4,000 draws of each of three answers' noise: a χ² test of the variance."""
    from scipy.stats import chi2

    release, size = quiet(DATA, epsilon=1, **UNITS["user"]), 4000
    for answer in release.answers[:3]:
        rho = Fraction((answer.clipping.bound / answer.scale) ** 2 / 2)  # of the integer noise
        drawn = OpenDPNoise().gaussian(np.zeros(size, np.int64), float(answer.clipping.bound), rho)
        assert drawn.scale == pytest.approx(answer.scale, rel=1e-6)
        squares = float((drawn.values.astype(float) ** 2).sum()) / answer.scale**2
        assert chi2.ppf(ALPHA / 2, size) < squares < chi2.ppf(1 - ALPHA / 2, size)


@each_unit
def test_answers_are_close_to_the_truth_where_the_budget_is_large(unit):
    release = quiet(DATA, epsilon=900, noise=SeededNoise(1), **UNITS[unit])
    # At user level, what clipping removed is estimated from noisy norms, which leaves a larger error.
    count_error, sum_error = (0.3, 0.35) if unit == "user" else (0.05, 0.06)
    assert release["count"].counts[0] == pytest.approx(len(DATA), rel=count_error)
    for name in ("length", "duration", "origin_destination/fine", "end_points/coarse", "occupancy/coarse"):
        assert release[name].counts.sum() == pytest.approx(len(DATA), rel=sum_error), name


@each_unit
def test_a_release_is_written_and_read_again(unit):
    release = quiet(DATA, epsilon=1, **UNITS[unit])
    text = release_to_json(release)
    again = release_from_json(text)
    assert release_to_json(again) == text
    for one, other in zip(release.answers, again.answers, strict=True):
        assert np.array_equal(one.counts, other.counts) and one.noise == other.noise


ALTERED = {
    "bound": lambda clipping: {**clipping, "bound": clipping["bound"] * 2},
    "no bound": lambda clipping: {**clipping, "bound": 0},
    "kept": lambda clipping: {**clipping, "kept": 1.5},
    "norms": lambda clipping: {**clipping, "norms": [1, 2]},
    "text": lambda clipping: {**clipping, "norms": "none"},
    "scale": lambda clipping: {**clipping, "norms_scale": clipping["norms_scale"] * 3},
    "no norms": lambda clipping: {**clipping, "norms": None, "norms_scale": None},
    "resolution": lambda clipping: {**clipping, "resolution": 1},
    "none": lambda clipping: None,
}


@pytest.mark.parametrize("change", ALTERED)
def test_an_altered_clipping_is_refused(change):
    document = json.loads(release_to_json(quiet(DATA, epsilon=1, noise=SeededNoise(1), **UNITS["user"])))
    document["answers"][3]["clipping"] = ALTERED[change](document["answers"][3]["clipping"])
    with pytest.raises(ReleaseError):
        release_from_json(json.dumps(document))


ALTERED_SECOND = {
    "scale": lambda second: {**second, "scale": second["scale"] * 2},
    "short": lambda second: {**second, "noisy": second["noisy"][1:]},
    "centre": lambda second: {**second, "centre": [-1, *second["centre"][1:]]},
    "large centre": lambda second: {**second, "centre": [2**40, *second["centre"][1:]]},
    "weights": lambda second: {**second, "weights": [0, *second["weights"][1:]]},
    "short weights": lambda second: {**second, "weights": second["weights"][1:]},
    "large weights": lambda second: {**second, "weights": [2**40, *second["weights"][1:]]},
    "no weights": lambda second: {name: value for name, value in second.items() if name != "weights"},
    "count": lambda second: {**second, "count": -1.0},
    "text": lambda second: {**second, "noisy": "none"},
    "bound": lambda second: {**second, "clipping": {**second["clipping"], "bound": 1}},
    "none": lambda second: None,
}


@pytest.mark.parametrize("change", ALTERED_SECOND)
def test_an_altered_second_draw_is_refused(change):
    document = json.loads(release_to_json(seeded("user")))
    entry = next(entry for entry in document["answers"] if "weights" in entry.get("centred", {}))
    entry["centred"] = ALTERED_SECOND[change](entry["centred"])
    with pytest.raises(ReleaseError):
        release_from_json(json.dumps(document))


@pytest.mark.parametrize(("units", "fewest", "clear"), [(141, 141, False), (300, 66, False), (400, 340, True)])
def test_few_units_get_no_centre_because_it_would_be_noise(units, fewest, clear):
    cost = measurement_cost(Fraction(1), Fraction("1e-6"), Unit.user(50))
    assert centre_is_clear(cost, units, fewest) == clear
    assert not any(answer.centred for answer in quiet(DATA, epsilon=1, noise=SeededNoise(1), **UNITS["user"]).answers)


def test_a_second_draw_has_less_noise_and_the_total_of_the_count():
    release = seeded("user")
    centred = [answer for answer in release.answers if answer.centred is not None]
    assert {"length", "occupancy/coarse", "end_points/coarse", "occupancy/detail"} <= {one.name for one in centred}
    assert "count" not in {answer.name for answer in centred}
    for answer in centred:
        first = replace(answer, centred=None)
        assert answer.noise < first.noise
        noise_of_sum = float(np.sqrt(2 * np.square(answer.noises).sum()))
        assert answer.counts.sum() == pytest.approx(answer.centred.count, abs=noise_of_sum), answer.name
        one = answer.as_one_draw()
        assert one.noise == pytest.approx(answer.noise) and one.counts == pytest.approx(answer.counts, abs=1e-4)


def test_a_first_draw_around_a_guess_has_less_noise_and_the_same_total(monkeypatch):
    guessed = seeded("user")
    monkeypatch.setattr("wayveil.measurement.gaussian.guessed_shares", lambda question, count, earlier: None)
    plain = with_second_draws("user")
    for name in ("end_points/detail", "occupancy/coarse", "occupancy/detail", "passage"):
        one, other = (replace(release[name], centred=None) for release in (guessed, plain))
        assert one.noise < other.noise, name
        assert one.counts.sum() == pytest.approx(guessed["count"].counts[0], rel=0.02), name


def test_guesses_come_from_answers_that_a_question_needs_and_add_up():
    release, guessed = seeded("user"), set()
    for answer in release.answers:
        needed = {name: release[name] for name in answer.question.needs}
        shares = guessed_shares(answer.question, 1000.0, needed)
        if shares is not None:
            guessed.add(answer.name)
            assert shares.shape == (size_of(answer.question),) and (shares >= 0).all()
            assert shares.sum() == pytest.approx(1.0)
    of_fields = {"end_points/detail", "occupancy/coarse", "occupancy/detail", "passage"}
    assert guessed == of_fields | {"origin_destination/coarse", "origin_destination/fine"}


def test_the_description_explains_delta():
    text = " ".join(describe(quiet(DATA, epsilon=1, noise=OpenDPNoise(), **UNITS["user"])).split())
    assert "δ = 1e-06" in text or "0.000001" in text
    assert "one in 1,000,000" in text


@pytest.mark.parametrize(("most", "weighted"), [(40, True), (100_000, False)])
def test_values_are_weighed_from_a_file_where_no_user_can_cause_an_overflow(tmp_path, most, weighted):
    """With a user whose trajectories all lie in one cell; above 65,536 trajectories that count there are no weights."""
    still = np.repeat([DATA.lon[0], DATA.lat[0]], 120).reshape(2, -1)
    seconds = DATA.t_utc[0] + 3600 * np.arange(60).repeat(2) + np.tile([0, 300], 60)
    one = Trajectories(2 * np.arange(61), *still, seconds, np.full(60, 99))
    data = concatenate([DATA, one])
    owner = np.repeat(np.arange(len(data)), np.diff(data.offsets))
    columns = {"traj_id": owner, "user_id": data.user[owner], "lat": data.lat, "lon": data.lon, "t": data.t_utc}
    pq.write_table(pa.table(columns), tmp_path / "rides.parquet")
    with mock.patch("wayveil.measurement.gaussian.LEAST_CENTRED", 0.0):
        release = quiet(tmp_path / "rides.parquet", epsilon=20, noise=SeededNoise(1), unit="user", max_per_user=most)
    centres = {answer.name: answer.centred.centre for answer in release.answers if answer.centred is not None}
    blocks = [centres[name] for name in ("occupancy/coarse", "end_points/coarse")]
    assert [centre.weights is not None for centre in blocks] == [weighted] * 2
    again = release_from_json(release_to_json(release))
    assert [answer.name for answer in again.answers] == [answer.name for answer in release.answers]
