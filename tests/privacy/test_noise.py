import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import stats
from wayveil.privacy import noise
from wayveil.privacy.budget import Budget
from wayveil.privacy.zcdp import LATTICE_VARIANCE, gaussian_delta, integer_rho, rho_for

SOURCES = [noise.OpenDPNoise(), noise.SeededNoise(20261115)]


@pytest.mark.parametrize("source", SOURCES, ids=["opendp", "seeded"])
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, Fraction(1, 2)), (2**20, Fraction(1, 3)), (3, Fraction(6))])
def test_laplace_is_the_one_claimed_and_half_of_it_is_not(source, sensitivity, epsilon):
    scale = sensitivity / float(epsilon)

    def draw(size):
        return source.laplace(np.full(size, 7, np.int64), sensitivity, epsilon).values - 7

    def draw_half(size):
        return source.laplace(np.zeros(size, np.int64), sensitivity, 2 * epsilon).values

    assert stats.fits(draw, stats.laplace_cdf, scale, 5_000)
    assert not stats.fits(draw_half, stats.laplace_cdf, scale, 5_000)


@pytest.mark.parametrize("source", SOURCES, ids=["opendp", "seeded"])
def test_gaussian_is_the_one_claimed_and_half_of_it_is_not(source):
    rho = Fraction(1, 200)

    def draw(size):
        return source.gaussian(np.zeros(size, np.int64), 10.0, rho).values

    def draw_half(size):
        return source.gaussian(np.zeros(size, np.int64), 10.0, 4 * rho).values

    assert stats.fits(draw, stats.gaussian_cdf, 100.0, 5_000)
    assert not stats.fits(draw_half, stats.gaussian_cdf, 100.0, 5_000)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "0.3333", "7.77", "1000", "0.000000001"])
@pytest.mark.parametrize("sensitivity", [1, 3, 2**20, 7 * 2**30])
def test_the_map_never_exceeds_the_share_and_wastes_next_to_nothing(epsilon, sensitivity):
    share = Fraction(epsilon)
    noisy = noise.OpenDPNoise().laplace(np.empty(0, np.int64), sensitivity, share)
    scale, cost = noisy.scale, noisy.epsilon_spent
    assert cost <= share
    assert cost >= share * (1 - Fraction(1, 10**9))
    assert scale == pytest.approx(sensitivity / float(share), rel=1e-9)


def test_every_value_gets_its_own_noise_across_chunks_and_keeps_its_place():
    sums = (np.arange(3 * noise.CHUNK).reshape(3, -1) * 10**9).astype(np.int64)
    noisy = noise.OpenDPNoise().laplace(sums, 1, Fraction(1, 100))
    difference = noisy.values - sums
    assert noisy.values.shape == sums.shape and noisy.values.dtype == np.int64
    assert np.abs(difference).max() < 10**5
    parts = difference.reshape(3, -1)
    assert not np.array_equal(parts[0], parts[1]) and abs(np.corrcoef(parts)[0, 1]) < 0.05


def test_an_empty_vector_gets_no_noise():
    assert noise.OpenDPNoise().laplace(np.empty(0, np.int64), 1, Fraction(1)).values.shape == (0,)


def test_only_opendp_noise_counts_as_private():
    sums = np.zeros(4, np.int64)
    assert noise.OpenDPNoise().laplace(sums, 1, Fraction(1)).private
    assert not noise.SeededNoise(1).laplace(sums, 1, Fraction(1)).private
    again = [noise.SeededNoise(5).laplace(sums, 100, Fraction(1)).values for _ in range(2)]
    assert np.array_equal(*again)


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(0, Fraction(1)), (1, Fraction(0)), (-1, Fraction(1))])
def test_impossible_costs_are_refused(sensitivity, epsilon):
    with pytest.raises(ValueError, match="must be above 0"):
        noise.OpenDPNoise().laplace(np.zeros(1, np.int64), sensitivity, epsilon)


def test_only_noise_imports_opendp():
    package = Path(noise.__file__).parents[1]
    importers = [
        path.name
        for path in package.rglob("*.py")
        if re.search(r"^\s*(import|from)\s+opendp", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert importers == ["noise.py"]


def test_dp_accounting_agrees_with_the_ledger_total(tmp_path):
    from dp_accounting.pld import privacy_loss_distribution as pld

    from wayveil.privacy.ledger import Ledger, Spend
    from wayveil.privacy.unit import Unit

    budget = Budget.split("1", {"count": 1, "occupancy": 12, "ends": 5, "length": 2})
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.spend(
        "rides",
        [Spend(name, share) for name, share in budget.shares.items()],
        total_if_new=budget.epsilon,
        unit=Unit.trajectory(),
    )
    (account,) = ledger.datasets()
    sensitivity, step, composed = 2**20, 1e-4, None
    for share in budget.shares.values():
        scale = noise.OpenDPNoise().laplace(np.empty(0, np.int64), sensitivity, share).scale
        one = pld.from_laplace_mechanism(scale, sensitivity, value_discretization_interval=step)
        composed = one if composed is None else composed.compose(one)
    assert account.spent == 1
    assert composed.get_epsilon_for_delta(0.0) == pytest.approx(float(account.spent), abs=len(budget.shares) * step)
    # And not charged for nothing: well below the total, the promise would be false.
    assert composed.get_delta_for_epsilon(0.9 * float(account.spent)) > 0


def test_gaussian_mode_follows_dp_accounting():
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    rho = rho_for(epsilon, delta)
    assert 0.999e-6 <= gaussian_delta(float(rho), 1.0) <= 1e-6
    log_inverse = math.log(1e6)
    proven = (math.sqrt(log_inverse + 1) - math.sqrt(log_inverse)) ** 2
    assert float(rho) >= proven  # the bound for every zCDP mechanism
    shares = [rho / 3, rho / 3, rho / 3]
    drawn = [noise.OpenDPNoise().gaussian(np.empty(0, np.int64), 1000.0, integer_rho(share, 1000)) for share in shares]
    assert sum(noisy.rho_spent for noisy in drawn) <= rho
    assert sum(1000**2 / (noisy.scale**2 - LATTICE_VARIANCE) / 2 for noisy in drawn) == pytest.approx(float(rho))
