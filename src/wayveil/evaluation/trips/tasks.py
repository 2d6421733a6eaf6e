"""Train a model on trips and test it on real ones."""

import numpy as np
from numpy.typing import NDArray

from wayveil.core.threads import one_thread
from wayveil.core.week import DAY_S
from wayveil.evaluation.paths import Paths
from wayveil.evaluation.trips.sets import cell_codes
from wayveil.evaluation.trips.settings import SETTINGS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def next_cell_accuracy(train: Paths, test: Paths) -> float | None:
    """Share of moves of the test trips into the cell that a Markov model of the training trips predicts.

    The model gives the cell that most often follows the last two cells, or the last one where these two never occur.
    None if no test trip visits three cells.
    """
    sequences = [_moves(paths) for paths in (train, test)]
    known, code = np.unique(np.concatenate([cell for cell, _ in sequences]), return_inverse=True)
    size, split = len(known), len(sequences[0][0])
    learned, tested = _triples(code[:split], sequences[0][1]), _triples(code[split:], sequences[1][1])
    if len(tested) == 0:
        return None
    pairs = _pairs(code[:split], sequences[0][1])
    by_one = _commonest(pairs[:, 0], pairs[:, 1], size)
    by_two = _commonest(learned[:, 0] * size + learned[:, 1], learned[:, 2], size)
    guess = _looked_up(*by_two, tested[:, 0] * size + tested[:, 1])
    guess = np.where(guess >= 0, guess, _looked_up(*by_one, tested[:, 1]))
    return float(np.mean(guess == tested[:, 2]))


def _moves(paths: Paths) -> tuple[Ints, Ints]:
    """The cells that each trip visits, without repetition, and the trip of each."""
    cell, owner = cell_codes(paths.x_m, paths.y_m, SETTINGS.cell_m), paths.owner
    new = np.r_[True, (cell[1:] != cell[:-1]) | (owner[1:] != owner[:-1])]
    return cell[new], owner[new]


def _pairs(cell: Ints, owner: Ints) -> Ints:
    same = owner[1:] == owner[:-1]
    return np.asarray(np.column_stack([cell[:-1], cell[1:]])[same])


def _triples(cell: Ints, owner: Ints) -> Ints:
    same = owner[2:] == owner[:-2]
    return np.asarray(np.column_stack([cell[:-2], cell[1:-1], cell[2:]])[same])


def _commonest(context: Ints, follower: Ints, size: int) -> tuple[Ints, Ints]:
    """The contexts in ascending order, and what follows each most often."""
    known, code = np.unique(context, return_inverse=True)
    pair, count = np.unique(code * size + follower, return_counts=True)
    order = np.lexsort((count, pair // size))
    last = np.r_[np.diff(pair[order] // size) != 0, True][: len(order)]
    return known, pair[order][last] % size


def _looked_up(known: Ints, follower: Ints, context: Ints) -> Ints:
    """What follows each context; -1 for an unknown one."""
    if len(known) == 0:
        return np.full(len(context), -1)
    place = np.minimum(np.searchsorted(known, context), len(known) - 1)
    return np.where(known[place] == context, follower[place], -1)


def travel_time_error(train: Paths, test: Paths, seed: int = 0) -> float | None:
    """Mean absolute error in seconds of travel times from origin, destination, weekday and hour.

    Gradient boosting on the logarithm of the duration. None if too few trips have a duration.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    (known, taken_s), (tested, true_s) = _journeys(train), _journeys(test)
    if min(len(taken_s), len(true_s)) < SETTINGS.fewest:
        return None
    model = HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=200, learning_rate=0.08, early_stopping=False, random_state=seed
    )
    with one_thread():
        guess_s = np.exp(model.fit(known, np.log(taken_s)).predict(tested))
    return float(np.mean(np.abs(guess_s - true_s)))


def _journeys(paths: Paths) -> tuple[Floats, Floats]:
    """Origin, destination, distance, weekday and hour of each trip with a duration, and that duration."""
    first, last = paths.first, paths.last
    x, y, duration_s = paths.x_m, paths.y_m, paths.t_utc[last] - paths.t_utc[first]
    distance = np.hypot(x[last] - x[first], y[last] - y[first])
    weekday, hour = np.floor(paths.start_week_s / DAY_S), paths.start_clock_s / 3600
    table = np.column_stack([x[first], y[first], x[last], y[last], distance, weekday, hour])
    timed = duration_s > 0
    return table[timed], duration_s[timed]
