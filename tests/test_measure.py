"""measure: the budget is paid exactly once, before noise exists; what fails afterwards says so."""

import os
import stat
import warnings
from fractions import Fraction

import numpy as np
import pytest

import wayveil.measurement.exact
from wayveil.core.pyramid import pool
from wayveil.core.trajectories import Trajectories, select
from wayveil.errors import CHARGED, BudgetError, InputError, LowSignalError, UnaccountedSpendWarning
from wayveil.io.source import MemorySource
from wayveil.measurement import SameContentWarning, exact_answers, measure
from wayveil.measurement.signal_check import count_noise
from wayveil.privacy.ledger import Ledger
from wayveil.privacy.noise import OpenDPNoise, SeededNoise
from wayveil.privacy.unit import Unit
from wayveil.privacy.zcdp import gaussian_delta
from wayveil.questions.catalogue import finest_questions
from wayveil.questions.detail_weights import PARTS, fine_parts
from wayveil.questions.levels import noisy_levels
from wayveil.questions.shares import OTHERS, ledger_lines
from wayveil.release import release_to_json
from wayveil.simulate import simulate_city, simulate_trajectories
from wayveil.workflow.synthesizer import Synthesizer


@pytest.fixture(scope="module")
def city():
    return simulate_city(0, size_km=(4, 4))


@pytest.fixture(scope="module")
def data(city):
    return simulate_trajectories(city, 300, seed=3)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite")


def test_the_lines_add_up_to_exactly_epsilon_and_are_on_the_ledger(city, data, ledger):
    release = measure(data, city.scope, epsilon="0.7", unit="trajectory", dataset="rides", ledger=ledger)
    assert sum(cost for _, cost in release.ledger) == release.epsilon == Fraction(7, 10)
    assert release.private and release.delta == 0 and release.unit == "trajectory"
    (account,) = ledger.datasets()
    assert account.spent == account.total == Fraction(7, 10)
    spends = [line for line in ledger.lines("rides") if line.kind == "spend"]
    # All questions but the count are one line on the ledger: the noisy count divides it after it was paid.
    costs = ledger_lines(dict(release.ledger))
    assert {line.name: line.epsilon for line in spends} == costs and list(costs) == ["count", OTHERS]


def test_a_second_measurement_needs_its_own_budget(city, data, ledger):
    ledger.open_dataset("rides", Fraction(3, 2), unit="trajectory")
    measure(data, city.scope, epsilon=1, unit="trajectory", dataset="rides", ledger=ledger)
    with pytest.raises(BudgetError, match=r"1 per trajectory, but 0\.5 of 1\.5 remains"):
        measure(data, city.scope, epsilon=1, unit="trajectory", dataset="rides", ledger=ledger)
    assert ledger.datasets()[0].spent == 1
    with pytest.raises(BudgetError, match="delta"):
        measure(data, city.scope, epsilon="0.5", unit="trajectory", delta="1e-6", dataset="rides", ledger=ledger)


def test_the_same_content_under_another_name_warns(city, data, ledger):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure(data, city.scope, epsilon=1, unit="trajectory", dataset="one", ledger=ledger)
    shuffled = select(data, np.random.default_rng(0).permutation(len(data)))
    with pytest.warns(SameContentWarning, match="as 'one' and as 'two'"):
        measure(shuffled, city.scope, epsilon=1, unit="trajectory", dataset="two", ledger=ledger)


def test_gaussian_noise_costs_what_it_says(city, data, ledger):
    account = {"dataset": "rides", "ledger": ledger, "noise": SeededNoise(1)}
    release = measure(data, city.scope, epsilon=1, unit="trajectory", delta="1e-6", **account)
    assert release.delta == 1e-6 and sum(cost for _, cost in release.ledger) == 1
    rho = sum((answer.clipping.bound / answer.scale) ** 2 / 2 for answer in release.answers)
    rho += sum(1 / answer.clipping.norms_scale**2 / 2 for answer in release.answers if answer.clipping.norms_scale)
    assert 0.99e-6 < gaussian_delta(rho, 1.0) <= 1e-6
    (account,) = ledger.datasets()
    assert account.spent == 1 and account.trajectory.spent.delta == account.trajectory.total.delta == Fraction(1, 10**6)
    # It pays where many views share one budget.
    pure = measure(data, city.scope, epsilon=1, unit="trajectory", noise=SeededNoise(1))
    assert release["departure_week"].noise < pure["departure_week"].noise / 2


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", 0), ("5", 0), ("1", "1e-6")])
def test_how_closely_a_block_is_looked_at_follows_from_the_release_alone(city, data, epsilon, delta):
    release = measure(data, city.scope, epsilon=epsilon, delta=delta, unit="user", max_per_user=3)
    for name in ("occupancy", "end_points"):
        coarse, detail = release[f"{name}/coarse"], release[f"{name}/detail"]
        middle, fine = detail.question.sides
        side = coarse.question.side
        assert side % middle == middle % fine == 0 and detail.question.levels.coarse == side
        assert detail.question.resolution == PARTS * coarse.question.resolution
        if detail.clipping is None:  # otherwise the noise was guessed before the bound was known
            parts = fine_parts(coarse.counts, (side // fine) ** 2, detail.noise)
            assert detail.question.weights.tolist() == parts.tolist()


def test_each_cell_of_a_detail_is_as_far_from_the_truth_as_its_own_noise_says(city, data):
    release = measure(data, city.scope, epsilon=20, unit="trajectory", noise=SeededNoise(1))
    questions = finest_questions(city.scope)
    exact = dict(zip(questions, exact_answers(data, city.scope, questions), strict=True))
    for name in ("occupancy", "end_points"):
        (finest,) = [question for question in questions if question.quantity == name]
        true_field = exact[finest].reshape(finest.shape) / finest.resolution
        levels = noisy_levels([release[f"{name}/{part}"] for part in ("coarse", "detail")])
        coarse, middle, fine = (np.abs(level.counts - pool(true_field, level.side)) / level.noise for level in levels)
        assert max(coarse.max(), middle.max(), fine.max()) < 20
        assert 0.7 < middle.mean() < 1.3 and 0.9 < fine.mean() < 1.1
        assert len({part for row in release[f"{name}/detail"].question.parts for part in row}) > 1


def test_user_level_noise_grows_with_the_cap(city, data):
    release = measure(data, city.scope, epsilon=1, unit="user", max_per_user=100, noise=SeededNoise(0))
    alone = measure(data, city.scope, epsilon=1, unit=Unit.trajectory(), noise=SeededNoise(0))
    assert release.max_per_user == 100 and "one user and all trajectories" in release.neighbours
    for name, _ in release.ledger:
        paid = [float(each[name].epsilon) for each in (release, alone)]
        assert release[name].noise * paid[0] == pytest.approx(100 * alone[name].noise * paid[1])
    nobody = Trajectories(data.offsets, data.lon, data.lat, data.t_utc)
    with pytest.raises(InputError, match="user column"):
        measure(nobody, city.scope, epsilon=1, unit="user", max_per_user=2)
    with pytest.raises(InputError, match="max_per_user"):
        measure(data, city.scope, epsilon=1, unit="user")


def test_injected_noise_is_stamped(city, data):
    first, second = (measure(data, city.scope, epsilon=1, unit="trajectory", noise=SeededNoise(7)) for _ in range(2))
    assert not first.private and release_to_json(first) == release_to_json(second)
    real = [measure(data, city.scope, epsilon=1, unit="trajectory") for _ in range(2)]
    assert real[0].private and release_to_json(real[0]) != release_to_json(real[1])


class Breaks(OpenDPNoise):
    def __init__(self, error):
        self.error = error

    def laplace(self, sums, sensitivity, epsilon):
        raise self.error


@pytest.mark.parametrize("error", [InputError("It broke."), ValueError("37.123"), KeyboardInterrupt(), MemoryError()])
def test_a_failure_after_the_spend_says_that_it_stays_charged(city, data, ledger, error):
    with pytest.raises(type(error)) as caught:
        measure(data, city.scope, epsilon=1, unit="trajectory", dataset="d", ledger=ledger, noise=Breaks(error))
    told = str(caught.value) + " ".join(getattr(caught.value, "__notes__", []))
    assert CHARGED in told and ledger.datasets()[0].spent == 1
    with pytest.raises(type(error)) as free:
        measure(data, city.scope, epsilon=1, unit="trajectory", noise=Breaks(type(error)("no ledger")))
    assert CHARGED not in str(free.value) and not getattr(free.value, "__notes__", [])


def test_a_failure_before_the_spend_costs_nothing(city, data, ledger):
    class Stops(MemorySource):
        def batches(self, progress=None):
            yield from super().batches()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        measure(Stops(data), city.scope, epsilon=1, unit="trajectory", dataset="d", ledger=ledger)
    assert not ledger.datasets() and not getattr(caught.value, "__notes__", [])
    far = city.scope.model_copy(update={"south": 10.0, "north": 10.04})
    with pytest.raises(InputError, match="No road"):
        measure(data, far, epsilon=1, unit="trajectory", dataset="d", ledger=ledger, roads=city.roadmap)
    with pytest.raises(InputError, match="only noise"):
        measure(data, city.scope, epsilon="1e-9", unit="user", max_per_user=10**6, dataset="d", ledger=ledger)
    for epsilon in (0, -1, "nan", "x"):
        with pytest.raises(InputError):
            measure(data, city.scope, epsilon=epsilon, unit="trajectory", dataset="d", ledger=ledger)
    with pytest.raises(InputError, match="ledger= needs dataset="):
        measure(data, city.scope, epsilon=1, unit="trajectory", ledger=ledger)
    assert not ledger.datasets()
    assert stat.S_IMODE(os.stat(ledger.path).st_mode) == 0o600
    # That nobody was inside the scope is private, too: the release is noise alone.
    measure(data, far, epsilon=1, unit="trajectory", dataset="d", ledger=ledger)
    assert ledger.datasets()


def test_an_exact_count_of_zero_is_no_reason_to_refuse(city, data, ledger):
    """Publishing a release would tell that at least one trajectory is inside."""
    far = city.scope.model_copy(update={"south": 10.0, "north": 10.04})
    for number, nothing in enumerate((data, Trajectories(np.zeros(1, np.int64), *np.empty((3, 0))))):
        name = f"far {number}"
        release = measure(nothing, far, epsilon=1, unit="trajectory", dataset=name, ledger=ledger)
        assert release.private and abs(release["count"].counts[0]) < 100 * 30


def test_a_measurement_without_an_account_warns_each_time(city, data, ledger):
    frame = data.to_pandas()
    promise = {"epsilon": 900, "unit": "trajectory"}
    with warnings.catch_warnings(record=True) as caught:
        # As in a fresh interpreter, whatever the filters of this test run are.
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("always", category=UnaccountedSpendWarning, append=True)
        for _ in range(2):
            measure(data, city.scope, **promise)
        Synthesizer(scope=city.scope, **promise).fit(frame)
        measure(data, city.scope, dataset="rides", ledger=ledger, **promise)
        Synthesizer(scope=city.scope, dataset="frames", ledger=ledger, **promise).fit(frame)
    found = [one for one in caught if one.category is UnaccountedSpendWarning]
    assert len(found) == 3 and {one.filename for one in found} == {__file__}
    assert all("dataset=" in str(one.message) for one in found)


def test_an_unaccounted_spend_can_be_made_an_error_that_costs_nothing(city, data):
    class Never(OpenDPNoise):
        def laplace(self, sums, sensitivity, epsilon):
            raise AssertionError("noise was drawn")

    with warnings.catch_warnings():
        warnings.simplefilter("error", UnaccountedSpendWarning)
        with pytest.raises(UnaccountedSpendWarning):
            measure(data, city.scope, epsilon=1, unit="trajectory", noise=Never())


def test_noise_that_would_hide_the_data_is_refused_before_it_is_read(city, ledger):
    class Unread(MemorySource):
        def batches(self, progress=None):
            raise AssertionError("the data was read")

    source = Unread(Trajectories(np.zeros(1, np.int64), *np.empty((3, 0)), user=np.empty(0, np.int64)))
    many = {"epsilon": 1, "unit": "user", "max_per_user": 20, "expected_trips": 300}
    account = {"dataset": "d", "ledger": ledger}
    with pytest.raises(LowSignalError) as refused:
        measure(source, city.scope, **many, **account)
    said = str(refused.value)
    assert "± 2,000" in said and "the 300 that you expect" in said and said.count(". ") == 1 and "--" not in said
    for word in ("epsilon=", "max_per_user=", "delta=", "more data", "accept_low_signal=True"):
        assert word in said
    for hopeless in (
        {"epsilon": "0.009", "unit": "trajectory"},
        {"epsilon": 1, "unit": "user", "max_per_user": 101},
        {"epsilon": 1, "unit": "trajectory", "expected_trips": 190},
    ):
        with pytest.raises(LowSignalError):
            measure(source, city.scope, **hopeless, **account)
        with pytest.raises(AssertionError, match="was read"):
            measure(source, city.scope, accept_low_signal=True, **hopeless, **account)
    for fine in (
        {"epsilon": "0.02", "unit": "trajectory"},
        {"epsilon": 1, "unit": "trajectory", "expected_trips": 300},
        {"epsilon": 1, "unit": "user", "max_per_user": 200, "expected_trips": 100_000},
    ):
        with pytest.raises(AssertionError, match="was read"):
            measure(source, city.scope, **fine, **account)
    for wrong in (0, -3, 2.5, "many", True):
        with pytest.raises(InputError, match="expected_trips= must be a whole number"):
            measure(source, city.scope, epsilon=1, unit="trajectory", expected_trips=wrong, **account)
    with pytest.raises(LowSignalError):
        Synthesizer(scope=city.scope, **many).fit(source)
    assert not ledger.datasets()


def test_a_budget_that_is_spent_is_refused_before_the_data_is_read(city, data, ledger):
    class Unread(MemorySource):
        def batches(self, progress=None):
            raise AssertionError("the data was read")

    promise = {"epsilon": 1, "unit": "trajectory", "dataset": "rides", "ledger": ledger}
    measure(data, city.scope, **promise)
    with pytest.raises(BudgetError, match="0 of 1 remains"):
        measure(Unread(data), city.scope, **promise)


def test_a_budget_that_is_spent_while_the_data_is_read_is_refused_at_the_spend(city, data, ledger):
    promise = {"epsilon": 1, "unit": "trajectory", "dataset": "rides", "ledger": ledger}

    class Overtaken(MemorySource):
        def batches(self, progress=None):
            measure(data, city.scope, **promise)
            return super().batches()

    with pytest.raises(BudgetError, match="0 of 1 remains"):
        measure(Overtaken(data), city.scope, **promise)
    assert ledger.datasets()[0].spent == 1


def test_the_noise_that_is_announced_is_the_noise_that_is_drawn(city, data):
    for promise in (
        {"epsilon": 1, "unit": "trajectory"},
        {"epsilon": 2, "unit": "user", "max_per_user": 7},
        {"epsilon": 1, "unit": "trajectory", "delta": "1e-6"},
    ):
        assert measure(data, city.scope, **promise)["count"].noise == pytest.approx(count_noise(**promise), rel=1e-6)
    most = {"epsilon": 1, "unit": "user", "max_per_user": 2, "delta": "1e-6"}
    count = measure(data, city.scope, **most)["count"]
    assert count.noise * count.clipping.kept <= count_noise(**most) * 1.000001


def test_a_source_is_read_once_and_twice_gives_the_same(city, data, monkeypatch):
    """The remembered end cells and a second reading are two ways to the same sums."""

    class Counting(MemorySource):
        times = 0

        def batches(self, progress=None):
            Counting.times += 1
            return super().batches()

    once = measure(Counting(data), city.scope, epsilon=200, unit="trajectory", noise=SeededNoise(2))
    assert Counting.times == 1 and "end_points/hours" in once
    monkeypatch.setattr(wayveil.measurement.exact, "MOST_REMEMBERED", 10)
    again = measure(Counting(data), city.scope, epsilon=200, unit="trajectory", noise=SeededNoise(2))
    assert Counting.times == 4 and release_to_json(once) == release_to_json(again)  # once more for each later view


def test_another_engine_gives_the_same_release(city, data, ledger):
    class Cut(MemorySource):
        def partitions(self):
            return [MemorySource(select(data, np.arange(*edges))) for edges in ((0, 41), (41, 42), (42, 300))]

    class Backwards:
        """A distributed engine hands parts out and gets them back; here the last comes first."""

        def map(self, function, pieces):
            return iter([function(piece) for piece in reversed(pieces)][::-1])

    how = {"epsilon": 1, "unit": "trajectory"}
    serial = measure(data, city.scope, noise=SeededNoise(4), **how)
    other = measure(Cut(data), city.scope, noise=SeededNoise(4), engine=Backwards(), dataset="d", ledger=ledger, **how)
    assert release_to_json(serial) == release_to_json(other)


def test_measure_takes_frames_with_other_column_names(city, data):
    from wayveil.core.tables import table_of

    table = table_of(data).rename_columns(["ride", "lat", "lon", "t", "user_id"])
    expected = exact_answers(data, city.scope, finest_questions(city.scope))
    found = measure(table, city.scope, epsilon=1, unit="trajectory", traj_id="ride", noise=SeededNoise(1))
    same = measure(data, city.scope, epsilon=1, unit="trajectory", noise=SeededNoise(1))
    assert release_to_json(found) == release_to_json(same) and int(expected[0][0]) == len(data)
    with pytest.raises(InputError, match="traj_id="):
        measure(table, city.scope, epsilon=1, unit="trajectory")
    with pytest.raises(InputError, match="There is no scope 'atlantis'"):
        measure(data, "atlantis", epsilon=1, unit="trajectory")
