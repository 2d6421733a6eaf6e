"""`evaluate_trips`: every score of single trips with its floor."""

from collections.abc import Iterator

import numpy as np

from wayveil.core.roads import RoadMap, check_inside
from wayveil.core.scope import Scope
from wayveil.core.trajectories import Trajectories
from wayveil.evaluation.metrics import as_paths
from wayveil.evaluation.paths import Paths
from wayveil.evaluation.trips.classifier import (
    area_under_curve,
    feature_distances,
    require_sklearn,
    telling_features,
)
from wayveil.evaluation.trips.conclusions import MEASURES
from wayveil.evaluation.trips.features import Features, features
from wayveil.evaluation.trips.places import inward_error, speed_errors, stays_per_100
from wayveil.evaluation.trips.result import TellingFeature, TripEvaluation
from wayveil.evaluation.trips.roads import Matched, RoadIndex
from wayveil.evaluation.trips.sets import Sets, make_sets, take
from wayveil.evaluation.trips.settings import SETTINGS
from wayveil.evaluation.trips.streets import FLOWS, flow_codes, flow_error
from wayveil.evaluation.trips.tasks import next_cell_accuracy, travel_time_error
from wayveil.progress import Progress, quiet

Pair = tuple[float | None, float | None]
"""A score and its floor; None where the data does not allow it."""
Pairs = dict[str, Pair]


def evaluate_trips(
    real: Trajectories | Paths,
    synthetic: Trajectories | Paths,
    scope: Scope,
    *,
    roads: RoadMap | None = None,
    with_time: bool = True,
    progress: Progress = quiet,
) -> TripEvaluation:
    """Compare single synthetic trips with real ones, and what a model learns from either.

    The real trips are split into two random halves. The first is the reference; the synthetic trips and, as the floor,
    the second half are compared with it, with as many trips each (at most 10,000; 3,000 for the classifier). The split
    is fixed, so equal data gives equal scores.

    Parameters
    ----------
    roads
        A public road map: adds features of roads and street flows.
    with_time
        False leaves out everything that uses times.

    Raises
    ------
    InputError
        If scikit-learn is not installed, or no road lies inside the scope.

    Examples
    --------
    >>> from wayveil.simulate import simulate_city, simulate_trajectories
    >>> city = simulate_city(seed=0, size_km=(3, 3))
    >>> real, other = (simulate_trajectories(city, n=300, seed=seed) for seed in (1, 2))
    >>> evaluate_trips(real, other, city.scope).scores["auc"].value < 0.7  # doctest: +SKIP
    True

    Privacy
    -------
    Not private (trusted side only).
    """
    require_sklearn()
    progress("trips", 0.0)
    index = None if roads is None else _road_index(roads, scope)
    sets = make_sets(as_paths(real, scope), as_paths(synthetic, scope), scope)
    if len(sets.real) < SETTINGS.fewest or sets.classified < SETTINGS.fewest:
        return TripEvaluation({}, (), len(sets.real), _wanted(index is not None, with_time))
    progress("trips", 0.1)
    matched = None if index is None else tuple(index.match(side) for side in _sides(sets))
    progress("trips", 0.25)
    pairs, telling = _features(sets, matched, with_time, progress)
    progress("trips", 0.65)
    pairs |= _tasks(sets, with_time)
    progress("trips", 0.85)
    pairs |= _tables(sets, matched, with_time)
    progress("trips", 1.0)
    names = _wanted(index is not None, with_time)
    scores = {
        name: MEASURES[name].score(value, floor)
        for name in names
        if (value := pairs[name][0]) is not None and (floor := pairs[name][1]) is not None
    }
    return TripEvaluation(scores, telling, len(sets.real), tuple(name for name in names if name not in scores))


_NEED_TIME = frozenset(
    {"ks_speed", "ks_recording", "ks_departure", "travel_time", "cell_speed", "hour_speed", "inward", "stays"}
)
_NEED_ROADS = frozenset({"ks_road", *FLOWS})


def _wanted(with_roads: bool, with_time: bool) -> tuple[str, ...]:
    """The scores to compute, in the order of the table."""
    left_out = (frozenset() if with_roads else _NEED_ROADS) | (frozenset() if with_time else _NEED_TIME)
    return tuple(name for name in MEASURES if name not in left_out)


def _road_index(roads: RoadMap, scope: Scope) -> RoadIndex:
    check_inside(roads, scope)
    return RoadIndex(roads, scope)


def _sides(sets: Sets) -> tuple[Paths, Paths, Paths]:
    """The reference, what is compared with it, and what gives the floor."""
    return sets.real, sets.synthetic, sets.other_half


def _features(
    sets: Sets, matched: tuple[Matched, ...] | None, with_time: bool, progress: Progress
) -> tuple[Pairs, tuple[TellingFeature, ...]]:
    """The classifier and the distances of features by group, and the features that differ most."""
    real, synthetic, other = _feature_tables(sets, matched, with_time)
    progress("trips", 0.35)
    pairs: Pairs = {}
    for group in real:
        value, floor = (_mean(feature_distances(real[group], side[group])) for side in (synthetic, other))
        pairs[f"ks_{group}"] = value, floor
    value = area_under_curve(real, synthetic)
    progress("trips", 0.5)
    pairs["auc"] = value, area_under_curve(real, other)
    return pairs, telling_features(real, synthetic, other)


def _feature_tables(sets: Sets, matched: tuple[Matched, ...] | None, with_time: bool) -> Iterator[dict[str, Features]]:
    for position, paths in enumerate(_sides(sets)):
        shown = take(paths, np.arange(sets.classified))
        roads = None if matched is None else matched[position].first(len(shown.x_m))
        yield features(shown, sets.rest, roads, with_time)


def _mean(distances: dict[str, float]) -> float | None:
    return float(np.mean(list(distances.values()))) if distances else None


def _tasks(sets: Sets, with_time: bool) -> Pairs:
    """Models trained on the synthetic trips, and on the other half of the real ones."""
    real, *others = _sides(sets)
    value, floor = (next_cell_accuracy(side, real) for side in others)
    pairs: Pairs = {"next_cell": (value, floor)}
    if with_time:
        value, floor = (travel_time_error(side, real) for side in others)
        pairs["travel_time"] = value, floor
    return pairs


def _tables(sets: Sets, matched: tuple[Matched, ...] | None, with_time: bool) -> Pairs:
    """Flows on streets, speeds by place and hour, movement towards the centre, stays."""
    real, synthetic, other = _sides(sets)
    pairs: Pairs = {}
    if matched is not None:
        real_flows, synthetic_flows, floor = (flow_codes(paths, roads) for paths, roads in zip(_sides(sets), matched))
        for name in FLOWS:
            pairs[name] = flow_error(real_flows[name], synthetic_flows[name]), flow_error(real_flows[name], floor[name])
    if with_time:
        value, least = speed_errors(real, synthetic), speed_errors(real, other)
        pairs |= {name: (value[name], least[name]) for name in value}
        pairs["inward"] = inward_error(real, synthetic), inward_error(real, other)
        stays, synthetic_stays, other_stays = (stays_per_100(paths) for paths in _sides(sets))
        pairs["stays"] = (synthetic_stays / stays, other_stays / stays) if stays > 0 else (None, None)
    return pairs
