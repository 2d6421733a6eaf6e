"""The Gaussian mode from end to end: clipped contributions, their noise, their cost, and what a release says of it."""

import json
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from stats import ALPHA
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.engine.units import UserUnits
from wayveil.errors import ReleaseError
from wayveil.measurement import measure
from wayveil.privacy.noise import OpenDPNoise, SeededNoise
from wayveil.privacy.zcdp import epsilon_of, rho_for
from wayveil.release import release_to_json
from wayveil.release.describe import describe
from wayveil.release.document import release_from_json
from wayveil.simulate import simulate_city, simulate_trajectories

CITY = simulate_city(0, size_km=(4, 4))
FIRST = simulate_trajectories(CITY, 300, seed=3)
DATA = Trajectories(
    FIRST.offsets, FIRST.lon, FIRST.lat, FIRST.t_utc, np.random.default_rng(0).integers(0, 40, len(FIRST))
)
UNITS = {"trajectory": {"unit": "trajectory"}, "user": {"unit": "user", "max_per_user": 200}}
each_unit = pytest.mark.parametrize("unit", UNITS)


class Noted(SeededNoise):
    """Seeded noise, or answers that were given before; with a note of each exact sum and its bound."""

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


def moved_too_far(data, extra, unit, epsilon="1"):
    """Which draws of the whole measurement the extra unit moves by more than the noise was scaled to."""
    notes = Noted()
    quiet(data, epsilon=epsilon, noise=notes, **UNITS[unit])
    replay = Noted(notes.given)
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

    def ungrouped(self):
        for batch, _ in grouped(self):
            yield batch, np.arange(len(batch))

    monkeypatch.setattr(UserUnits, "_buckets", ungrouped)
    assert moved_too_far(DATA, someone("user", 99), "user")


def best_order(rho, delta):
    """min over α of αρ + ln((α − 1)/α) − (ln δ + ln α)/(α − 1) (Canonne et al. 2020), without dp-accounting."""

    def epsilon(log):
        order = 1 + math.exp(log)
        return order * rho + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)

    return minimize_scalar(epsilon, bounds=(-3, 14), method="bounded", options={"xatol": 1e-9}).fun


@each_unit
def test_an_independent_accountant_agrees(unit):
    release = quiet(DATA, epsilon=1, **UNITS[unit])
    costs = [(answer.clipping.bound / answer.scale) ** 2 / 2 for answer in release.answers]
    norms = [1 / answer.clipping.norms_scale**2 / 2 for answer in release.answers if answer.clipping.norms_scale]
    assert len(norms) == (len(costs) if unit == "user" else 6 + ("end_points/hours" in release))
    rho = sum(costs) + sum(norms)
    assert 0.99 < best_order(rho, 1e-6) <= 1.0001
    # Each line of the ledger is its part of ρ.
    for answer, cost in zip(release.answers, costs, strict=True):
        whole = cost + (1 / answer.clipping.norms_scale**2 / 2 if answer.clipping.norms_scale else 0)
        assert whole / rho == pytest.approx(float(answer.epsilon / release.epsilon), rel=1e-6)
    assert sum(cost for _, cost in release.ledger) == 1


def test_more_orders_find_more_rho_and_never_too_much():
    for epsilon, delta in ((0.1, 1e-6), (1, 1e-6), (3, 1e-8)):
        rho = float(rho_for(Fraction(str(epsilon)), Fraction(str(delta))))
        assert epsilon_of(rho, delta) <= epsilon and best_order(rho, delta) <= epsilon
        assert best_order(rho * 1.01, delta) > epsilon  # within a per cent of the best


def test_the_noise_has_the_variance_that_was_paid_for():
    """Bounds and scales of one release, 4,000 draws of each of three answers' noise: a χ² test of the variance."""
    from scipy.stats import chi2

    release, size = quiet(DATA, epsilon=1, **UNITS["user"]), 4000
    for answer in release.answers[:3]:
        rho = Fraction((answer.clipping.bound / answer.scale) ** 2 / 2)
        drawn = OpenDPNoise().gaussian(np.zeros(size, np.int64), float(answer.clipping.bound), rho)
        assert drawn.scale == pytest.approx(answer.scale, rel=1e-6)
        squares = float((drawn.values.astype(float) ** 2).sum()) / answer.scale**2
        assert chi2.ppf(ALPHA / 2, size) < squares < chi2.ppf(1 - ALPHA / 2, size)


@each_unit
def test_answers_are_close_to_the_truth_where_the_budget_is_large(unit):
    release = quiet(DATA, epsilon=900, **UNITS[unit])
    assert release["count"].counts[0] == pytest.approx(len(DATA), rel=0.05)
    for name in ("length", "duration", "origin_destination/fine", "end_points/coarse", "occupancy/coarse"):
        assert release[name].counts.sum() == pytest.approx(len(DATA), rel=0.06), name


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
    document = json.loads(release_to_json(quiet(DATA, epsilon=1, **UNITS["user"])))
    document["views"][3]["clipping"] = ALTERED[change](document["views"][3]["clipping"])
    with pytest.raises(ReleaseError):
        release_from_json(json.dumps(document))


def test_the_description_explains_delta():
    text = " ".join(describe(quiet(DATA, epsilon=1, noise=OpenDPNoise(), **UNITS["user"])).split())
    assert "δ = 1e-06" in text or "0.000001" in text
    assert "one in 1,000,000" in text
