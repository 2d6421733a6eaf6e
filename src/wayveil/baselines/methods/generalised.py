"""Generalised trajectories (Hua, Gao, Zhong: INFOCOM 2015), reimplemented from the paper.

Each trajectory is reduced to three places at equal arc length, which stand for the paper's time steps. At each step the
places are merged into groups: the exponential mechanism chooses one of several partitions. The sequences of groups are
counted with noise, and trajectories are drawn from the counts, with a place from each group.

The authors make the candidate partitions from the data (in the published mode: k-means that starts at random places of
the data) and add noise only to sequences that occur. Private k-means would cost part of epsilon in each round, so in
the default mode the centres are drawn from the public box, and noise is added to every sequence of groups.
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.grid import Box, draw_systematic, norm_sub
from wayveil.baselines.mechanism import Features
from wayveil.baselines.method import Method, Run
from wayveil.baselines.records import waypoints
from wayveil.core.trajectories import Trajectories

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEPS = 3
"""Places of a trajectory, at equal arc length."""
GROUPS = 12
"""Groups of places at each step."""
PARTITIONS = 48
"""Candidate partitions at each step."""
ROUNDS = 4
"""Rounds of k-means for each candidate; few, so that the candidates differ."""
_PLACES = 20_000
"""Public places from which the members of a group are drawn."""


def _make(run: Run) -> Trajectories:
    count = run.count()
    x_m, y_m = waypoints(*run.data, STEPS)
    centres = [_partition(run, x_m[:, step], y_m[:, step], f"places {step + 1}") for step in range(STEPS)]
    group = np.column_stack([_nearest(x_m[:, s], y_m[:, s], *centres[s]) for s in range(STEPS)])
    code = group @ GROUPS ** np.arange(STEPS)
    features = Features(np.arange(len(code)), code, np.ones(len(code)))
    noisy = run.mechanism.sums("sequences", features, GROUPS**STEPS)
    if run.published:
        noisy = np.where(np.bincount(code, minlength=len(noisy)) > 0, np.maximum(noisy, 0.0), 0.0)
    else:
        noisy = norm_sub(noisy, count)
    drawn = draw_systematic(noisy, run.size(count), run.rng)
    return _places(run, drawn, centres)


def _partition(run: Run, x_m: Floats, y_m: Floats, name: str) -> tuple[Floats, Floats]:
    """The centres of the best of the candidate partitions, by the noisy sum of distances to the nearest centre.

    A trajectory adds between 0 and 1 (its distance as a share of the map's diameter), in whole thousandths.
    """
    box, diameter_m = run.box, float(np.hypot(run.box.width_m, run.box.height_m))
    if run.published:
        centre_x, centre_y = _k_means(x_m, y_m, run.rng)
    else:
        centre_x, centre_y = _uniform(box, (PARTITIONS, GROUPS), run.rng)
    score = np.zeros((1, PARTITIONS), np.int64)
    for candidate in range(PARTITIONS):
        apart_m = _distances(x_m, y_m, centre_x[candidate], centre_y[candidate]).min(1)
        score[0, candidate] = -np.minimum(apart_m / diameter_m * 1000.0, 1000.0).astype(np.int64).sum()
    best = int(run.mechanism.choose(name, score, 1000)[0])
    return centre_x[best], centre_y[best]


def _k_means(x_m: Floats, y_m: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """(PARTITIONS, GROUPS) centres, each partition from different random places.

    Privacy: not private (trusted side only).
    """
    index = rng.integers(0, len(x_m), (PARTITIONS, GROUPS))
    centre_x, centre_y = x_m[index], y_m[index]
    for some_x, some_y in zip(centre_x, centre_y):
        for _ in range(ROUNDS):
            group = _nearest(x_m, y_m, some_x, some_y)
            size = np.bincount(group, minlength=GROUPS)
            full = size > 0
            some_x[full] = np.bincount(group, x_m, GROUPS)[full] / size[full]
            some_y[full] = np.bincount(group, y_m, GROUPS)[full] / size[full]
    return centre_x, centre_y


def _uniform(box: Box, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Floats, Floats]:
    return box.x_m + rng.random(shape) * box.width_m, box.y_m + rng.random(shape) * box.height_m


def _distances(x_m: Floats, y_m: Floats, centre_x: Floats, centre_y: Floats) -> Floats:
    apart: Floats = np.hypot(x_m[:, None] - centre_x[None], y_m[:, None] - centre_y[None])
    return apart


def _nearest(x_m: Floats, y_m: Floats, centre_x: Floats, centre_y: Floats) -> Ints:
    group: Ints = _distances(x_m, y_m, centre_x, centre_y).argmin(1)
    return group


def _places(run: Run, drawn: Ints, centres: list[tuple[Floats, Floats]]) -> Trajectories:
    """A public place of each group, drawn evenly from those nearest to its centre; the centre where there is none.

    Privacy: free (post-processing).
    """
    x_m, y_m = np.zeros((2, len(drawn), STEPS))
    for step, (centre_x, centre_y) in enumerate(centres):
        group = drawn // GROUPS**step % GROUPS
        place_x, place_y = _uniform(run.box, (_PLACES,), run.rng)
        place_x, place_y = np.r_[place_x, centre_x], np.r_[place_y, centre_y]
        member = _nearest(place_x, place_y, centre_x, centre_y)
        order = np.argsort(member, kind="stable")
        first = np.searchsorted(member[order], np.arange(GROUPS + 1))
        size = np.maximum(np.diff(first), 1)
        index = order[np.minimum(first[group] + (run.rng.random(len(group)) * size[group]).astype(int), len(order) - 1)]
        x_m[:, step], y_m[:, step] = place_x[index], place_y[index]
    return run.made(np.arange(0, x_m.size + 1, STEPS), x_m.ravel(), y_m.ravel())


_PLACE_SHARES = {f"places {step + 1}": "0.1" for step in range(STEPS)}
"""Equal shares of ε for the choices of places."""

generalised = Method(
    name="generalised",
    reference="Hua, Gao, Zhong: INFOCOM 2015",
    idea="Groups of places at three steps by the exponential mechanism, noisy counts of their sequences.",
    protects="one trajectory, added or removed",
    proof="Report noisy max covers each choice of groups, a trajectory is in one sequence, and the shares add up.",
    leaks=(
        "Not private: box and number of trajectories are exact; candidate groups are made from the data; only "
        "sequences that occur are given noise; noise is floating-point."
    ),
    shares={"count": "0.03", **_PLACE_SHARES, "sequences": "0.67"},
    published_shares={**_PLACE_SHARES, "sequences": "0.7"},
    make=_make,
)
