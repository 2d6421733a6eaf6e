"""Descents side by side, and the comparison in several processes: the same numbers as one after the other."""

from pathlib import Path

import numpy as np
import pytest

from wayveil.core.trajectories import Trajectories
from wayveil.dpe.descent import Settings, descend, descend_many, sums_of
from wayveil.dpe.random_walks import random_walks
from wayveil.errors import InputError
from wayveil.reproduction import comparison
from wayveil.reproduction.parameters import grid, shown


def targets(loss_scale: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    walks = random_walks(40, 10, 0)
    sums = sums_of(walks, precision="float64")
    noise = np.random.default_rng(1).normal(scale=loss_scale * sums.mean(), size=(3, len(sums)))
    noise[2] = 0.0  # this one has nothing to do and stops at once
    return walks.vectors, sums + noise


@pytest.mark.parametrize("loss", ["mean-square", "absolute"])
def test_side_by_side_equals_one_by_one(loss: str) -> None:
    vectors, goals = targets()
    settings = Settings(loss, 0.01, iterations=70, precision="float64")
    found = descend_many(vectors, goals, settings)
    for made, goal in zip(found, goals):
        alone = descend(vectors, goal, settings).vectors
        assert np.allclose(made, alone, atol=1e-9)
    assert not np.allclose(found[0], found[1], atol=1e-6)
    assert np.array_equal(found[2], vectors)


def test_iterations_are_counted_across_turns() -> None:
    vectors, goals = targets()
    for iterations in (1, 64, 65, 130):
        run = descend(vectors, goals[0], Settings("mean-square", 0.01, iterations, precision="float64"))
        assert len(run.losses) == iterations
        assert all(np.diff(run.losses) < 0)


def test_one_that_diverges_stops_all_and_says_where() -> None:
    vectors, goals = targets()
    settings = Settings("sum-square", 100.0, 50)
    with pytest.raises(InputError, match=r"finite number at iteration \d+; lower learning_rate="):
        descend_many(vectors, goals, settings)


def test_a_legend_has_at_most_nine_epsilons() -> None:
    epsilons = grid(quick=False, full=True)[1]
    assert len(epsilons) == 100
    some = shown(epsilons)
    assert 5 <= len(some) <= 9 and some[0] == 0.01 and some[-1] == 1.0
    assert shown([0.1, 1.0]) == [0.1, 1.0]


def test_processes_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wayveil.io import files
    from wayveil.io.scope_files import read_scope

    scope = read_scope("demo-city")
    at = np.random.default_rng(0).uniform(2_000, 8_000, (60, 1, 2)) + 90.0 * np.arange(8)[None, :, None]
    lon, lat = scope.to_degrees(*at.reshape(-1, 2).T)
    t_utc = np.ceil(scope.time_window()[0]) + 3_600.0 * np.repeat(np.arange(60), 8) + 30.0 * np.tile(np.arange(8), 60)
    files.write(Trajectories(np.arange(61) * 8, lon, lat, t_utc), tmp_path / "rides.parquet")
    data = comparison.Dataset("Demo", ("rides.parquet",), "demo-city", 0.1)
    monkeypatch.setattr(comparison, "DATASETS", (data,))

    def rows(jobs: int) -> list[dict]:
        made = comparison.run(tmp_path, tmp_path / "o", methods="dpe,adatrace", subset=50, iterations=2, quick=True,
                              jobs=jobs)  # fmt: skip
        return [{key: value for key, value in row.items() if key != "seconds"} for row in made]

    here, there = rows(1), rows(2)
    assert [(row["epsilon"], row["method"]) for row in there] == [(row["epsilon"], row["method"]) for row in here]
    assert here[0] == there[0]
    assert len(here) == 6
    with pytest.raises(InputError, match="jobs="):
        rows(0)
