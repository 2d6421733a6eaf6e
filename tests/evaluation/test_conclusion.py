"""What a reader should conclude from an evaluation."""

import numpy as np
import pytest
from typer.testing import CliRunner

from wayveil.cli.main import app
from wayveil.core.trajectories import Trajectories
from wayveil.errors import InputError
from wayveil.evaluation.all_metrics import HEADLINE, METRICS
from wayveil.evaluation.conclusion import (
    GROUPS,
    MATTERS,
    OF_ROUTES,
    PURPOSES,
    conclude,
    conclusion_line,
    floor_warnings,
    in_groups,
    purpose_of,
    word_of,
)
from wayveil.evaluation.score import Score, evaluate
from wayveil.simulate import scope_toml, simulate_city, simulate_trajectories


def score(value, floor=0.05, half=0.005, higher=False):
    return Score(value, value - half, value + half, floor, 0.001, False, higher)


def test_every_metric_is_in_one_group_and_every_use_knows_its_metrics():
    grouped = [name for members in GROUPS.values() for name in members]
    assert sorted(grouped) == sorted(METRICS)
    assert all(name in METRICS for names in MATTERS.values() for name in names)
    assert list(in_groups(METRICS)) == list(GROUPS)
    assert in_groups(["new_metric"]) == {"Others": ["new_metric"]}


@pytest.mark.parametrize(
    ("name", "given", "word"),
    [
        ("length", score(0.05), "good"),
        ("length", score(0.054), "good"),  # the floor is in its interval
        ("length", score(0.06), "good"),
        ("length", score(0.10), "rough"),
        ("length", score(0.30), "poor"),
        ("trip_100", score(0.65, floor=0.6), "no use"),
        ("pattern_f1", score(0.5, floor=0.9, higher=True), "rough"),
        ("pattern_f1", score(0.95, floor=0.9, higher=True), "good"),
    ],
)
def test_words_follow_the_distance_from_the_floor(name, given, word):
    assert word_of(name, given) == word


def all_with(**others):
    """Scores at their floors for every metric that matters for a use, but for those given."""
    return {name: score(0.05) for names in MATTERS.values() for name in names} | others


def test_the_conclusion_names_the_weakest_metrics():
    scores = {name: score(0.3) for name in MATTERS["planning"]}
    scores |= {"start_hour": score(0.05), "trip_1000": score(0.5), "length": score(0.11), "speed": score(0.07)}
    found = conclude(scores, "planning")
    assert found.word == "poor" and "furthest: trip_1000 (poor), path_density_100 (poor)" in found.details
    assert conclusion_line(scores, False, (), "planning").startswith("This data is poor for planning: 2 of 8")
    every_use = conclusion_line(all_with(), False, ())
    assert every_use == "This data is good for planning, good for simulation, good for research."


@pytest.mark.parametrize(("above", "word"), [(0.0199, "good"), (0.0201, "rough")])
def test_the_conclusion_states_what_good_means(above, word):
    scores = all_with(length=score(0.0009 + above, floor=0.0009, half=0.001))
    planning = conclude(scores, "planning")
    assert planning.words["length"] == word
    assert "good (at most 0.02 worse than the floor, or the floor is within the 95 % interval)" in planning.details
    assert "at most 0.02 worse than the floor, or 0.2 for pattern_f1" in conclude(scores, "research").details


def test_too_few_metrics_give_no_verdict():
    """The five metrics of --headline would call data poor that all metrics call rough."""
    scores = {name: score(0.3) for name in HEADLINE}
    for use in PURPOSES:
        assert conclude(scores, use).word == "no verdict"
    assert conclusion_line(scores, False, ()).startswith("No verdict for planning, simulation or research: too few")
    line = conclusion_line(scores, False, (), "planning")
    assert line.startswith("No verdict for planning: only 2 of 8 metrics that matter were computed; evaluate all")
    assert line.count(".") == 1 and "all metrics" in line
    half = {name: score(0.05) for name in MATTERS["planning"]}
    assert conclusion_line(half, False, ()).startswith("This data is good for planning. No verdict for ")
    assert conclude({name: half[name] for name in MATTERS["planning"][:6]}, "planning").word == "good"
    assert conclude({name: half[name] for name in MATTERS["planning"][:5]}, "planning").word == "no verdict"


def test_trips_without_routes_need_no_metrics_of_routes_for_a_verdict():
    scores = {name: one for name, one in all_with().items() if name not in OF_ROUTES}
    assert conclude(scores, "research").word == "no verdict"
    assert conclude(scores, "research", routes=False).word == "good"
    assert "for research" in conclusion_line(scores, False, (), routes=False)


def test_trips_with_two_points_are_not_judged_by_routes():
    city = simulate_city(0, size_km=(3, 3))
    tables = []
    for seed in (1, 2):
        rides = simulate_trajectories(city, 60, seed=seed)
        ends = np.c_[rides.offsets[:-1], rides.offsets[1:] - 1].ravel()
        tables.append(Trajectories(np.arange(0, 121, 2), rides.lon[ends], rides.lat[ends], rides.t_utc[ends]))
    found = evaluate(*tables, city.scope)
    assert not set(OF_ROUTES) & set(found.scores) and "trip_1000" in found.scores and "length" in found.scores
    assert any("metrics of routes" in warning for warning in found.warnings)
    assert "No verdict" not in found.conclusion and found.to_dict()["routes"] is False
    few = evaluate(*tables, city.scope, metrics=HEADLINE)
    assert set(few.scores) == set(HEADLINE) - set(OF_ROUTES) and few.warnings[-1] == found.warnings[-1]
    whole = evaluate(rides, rides, city.scope, metrics=["relation", "length"])
    assert set(whole.scores) == {"relation", "length"} and not any("routes" in one for one in whole.warnings)


def test_copies_and_too_few_trips_come_before_everything_else():
    scores = {"length": score(0.05)}
    assert "Nothing can be concluded" in conclusion_line(scores, True, ())
    assert "length is below the floor" in conclusion_line(scores, False, ["length"])
    assert "no metric" in conclusion_line({"diameter": score(0.05)}, False, (), "planning")


def test_nothing_is_concluded_where_most_floors_are_too_high():
    lost = score(0.65, floor=0.6)
    scores = {name: score(0.05) for name in MATTERS["planning"][-6:]}
    scores |= {"trip_1000": lost, "trip_2000": lost, "length": lost}
    assert conclude(scores, "planning").word == "no use"
    assert conclusion_line(scores, False, (), "planning") == (
        "Nothing can be concluded for planning: 3 of 6 metrics that matter cannot be judged with so few trips."
    )
    scores |= {"trip_2000": score(0.05), "length": score(0.05)}
    assert conclusion_line(scores, False, (), "planning").startswith("This data is good for planning: 5 of 5")
    research = all_with(density_100=lost, endpoints_100=lost, relation=lost, longest_step=lost)
    assert conclusion_line(research, False, ()) == (
        "This data is good for planning, good for simulation. Nothing can be concluded for research: with so few "
        "trips, most metrics cannot be judged."
    )
    everywhere = dict.fromkeys(all_with(), lost)
    assert conclusion_line(everywhere, False, (), "planning").startswith("Nothing can be concluded for planning: 8 of")


def test_the_command_prints_the_conclusion_first(tmp_path):
    import wayveil

    city = wayveil.simulate.simulate_city(size_km=(3, 3))
    for seed in (0, 1):
        wayveil.write(wayveil.simulate.simulate_trajectories(city, 60, seed=seed), tmp_path / f"{seed}.parquet")
    (tmp_path / "city.toml").write_text(scope_toml(city))
    files = [str(tmp_path / name) for name in ("0.parquet", "1.parquet")]
    told = CliRunner().invoke(app, ["evaluate", *files, "--scope", str(tmp_path / "city.toml"), "--headline"])
    assert told.output.startswith("No verdict for planning")


@pytest.mark.parametrize(
    ("real", "synthetic", "said"),
    [(1000, 1000, None), (1000, 900, "fewer trajectories"), (1000, 400, "small samples"), (1000, 1500, "extrapolated")],
)
def test_floors_of_other_sizes_are_not_comparable(real, synthetic, said):
    told = floor_warnings({"length": score(0.05)}, real, synthetic)
    assert (told == []) if said is None else (len(told) == 1 and said in told[0])


def test_a_floor_that_is_too_high_is_named():
    assert "trip_100" in floor_warnings({"trip_100": score(0.65, floor=0.6)}, 1000, 1000)[0]


def test_an_unknown_use_is_refused():
    with pytest.raises(InputError, match="planning, simulation, research"):
        purpose_of("marketing")
    told = CliRunner().invoke(app, ["evaluate", "a.csv", "b.csv", "--scope", "beijing", "--for", "marketing"])
    assert told.exit_code != 0


def test_the_first_line_is_the_conclusion():
    import wayveil

    city = wayveil.simulate.simulate_city(size_km=(3, 3))
    rides, others = (wayveil.simulate.simulate_trajectories(city, 60, seed=seed) for seed in (0, 1))
    found = wayveil.evaluate(rides, others, city.scope, metrics=MATTERS["planning"], purpose="planning")
    assert str(found).splitlines()[0] == found.conclusion == found.to_dict()["conclusion"]
    assert "planning" in found.conclusion and found.to_dict()["scores"]["length"]["word"] == found.words["length"]
