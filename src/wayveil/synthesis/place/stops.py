"""Stops: how long each trip rests, and at which of its fixes; short waits between two fixes.

A rest is recorded if whole steps pass without movement; the release tells how much of their time trips rest. Waits at
lights that are shorter than the sampling interval are not recorded as rests, but make some steps slower than others.

Privacy: free (post-processing).
"""

import numpy as np
from numpy.typing import NDArray

from wayveil.core import ragged
from wayveil.questions.rest_share import REST_MPS, RestShare
from wayveil.questions.top_speed import TopSpeed
from wayveil.synthesis.estimate.estimate import Estimates
from wayveil.synthesis.place.settings import STOPS
from wayveil.synthesis.trips.draw import stratified


def draw_rest_shares(
    estimates: Estimates, length_m: NDArray[np.float64], duration_s: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float64]:
    """The share of each trip's time at rest, from the estimated distribution.

    Trips that are slow for their length rest more than others: rests are part of what makes them slow.

    No trip rests so long that it would have to exceed the top speed of trips with a similar mean speed.
    """
    count, mean_mps = len(length_m), length_m / np.maximum(duration_s, 1.0)
    if count == 0:
        return np.zeros(0)
    rest, top = estimates.distribution(RestShare), estimates.distribution(TopSpeed)
    edges = np.asarray(rest.bins.edges)
    bins = stratified(rest.shares, count, random)
    share = edges[bins] + random.random(count) * np.diff(edges)[bins]
    share[bins == 0] = 0.0
    rank = np.empty(count)
    rank[np.argsort(mean_mps, kind="stable")] = np.arange(count) / count
    key = (1 - STOPS.by_chance) * _rank_within(length_m, mean_mps) + STOPS.by_chance * random.random(count)
    result = np.empty(count)
    result[np.argsort(-key, kind="stable")] = np.sort(share)
    running = np.r_[0.0, np.cumsum(top.shares)] / top.shares.sum()
    top_mps = np.interp(rank, running, np.asarray(top.bins.edges)) / 3.6
    most: NDArray[np.float64] = np.clip(1 - mean_mps / np.maximum(top_mps, 1e-9), 0.0, STOPS.longest_share)
    return np.minimum(result, most)


def _rank_within(length_m: NDArray[np.float64], mean_mps: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each trip's mean speed among the trips of about its length, from 0 to 1."""
    by_length = np.argsort(np.argsort(length_m, kind="stable"), kind="stable")
    group = by_length // STOPS.of_one_length
    size = np.bincount(group)
    rank = np.empty(len(length_m))
    rank[np.lexsort((mean_mps, group))] = (ragged.ranks(size) + 0.5) / np.repeat(size, size)
    return rank


def moving_times(
    offsets: NDArray[np.int64],
    time_s: NDArray[np.float64],
    rest_share: NDArray[np.float64],
    interval_s: NDArray[np.float64],
    random: np.random.Generator,
    least_moving: float | NDArray[np.float64] = 0.0,
) -> NDArray[np.float64]:
    """Seconds of the gap before each fix in which the trip moves; zero at first fixes.

    A trip that would move for less than the share `least_moving` of its time gets neither rests nor waits.

    Parameters
    ----------
    time_s
        Seconds since the departure, from 0 in each row.
    interval_s
        The sampling interval of each row.
    """
    counts = np.diff(offsets)
    gap_s = np.diff(time_s, prepend=0.0)
    gap_s[offsets[:-1]] = 0.0
    duration_s = np.maximum(time_s[offsets[1:] - 1], 1e-9)
    rest_s = rest_share * duration_s
    resting = _long_gaps(offsets, gap_s, rest_s, interval_s)
    rest_s = np.maximum(rest_s - ragged.sums(np.where(resting, gap_s, 0.0), offsets), 0.0)
    resting |= _rests(offsets, time_s / np.repeat(duration_s, counts), rest_s, duration_s, interval_s, random)
    moving_s = gap_s - _waits(gap_s, np.repeat(interval_s, counts), random)
    moving_s[resting] = 0.0
    still = ragged.sums(moving_s, offsets) <= np.maximum(least_moving, STOPS.least_moving) * duration_s
    return np.where(np.repeat(still, counts), gap_s, moving_s)


def with_short_moves(
    offsets: NDArray[np.int64],
    moving_s: NDArray[np.float64],
    gap_s: NDArray[np.float64],
    mean_mps: NDArray[np.float64],
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """The moving times, with a short one in some of the first and last gaps of rests: the trip arrives or departs.

    A step counts as a rest if it is slower than REST_MPS, so the trip can move for up to `slow_s` seconds of it: at an
    interval of minutes, for a while. A rest of several gaps begins and ends at random times: its first gap, and
    likewise its last, contains such a move with the probability `slow_s` / gap. A rest of a single gap contains one
    unless its wait, which is exponential, goes on through the last `slow_s` seconds of the gap.
    """
    slow_s = np.repeat(np.minimum(REST_MPS / np.maximum(mean_mps, REST_MPS), 1.0), np.diff(offsets)) * gap_s
    resting = (moving_s == 0) & (gap_s > 0)
    after, before = np.r_[False, resting[:-1]], np.r_[resting[1:], False]
    moves = np.where(after | before, slow_s / np.maximum(gap_s, 1e-9), 1 - np.exp(-slow_s / STOPS.wait_s))
    some = np.flatnonzero(resting & ~(after & before))
    some = some[random.random(len(some)) < moves[some]]
    result = moving_s.copy()
    result[some] = random.random(len(some)) * slow_s[some]
    return result


def _long_gaps(
    offsets: NDArray[np.int64],
    gap_s: NDArray[np.float64],
    rest_s: NDArray[np.float64],
    interval_s: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Whether each gap is a long pause: the longest of its trip, which rests at least that long (no signal indoors)."""
    longest_s = np.maximum.reduceat(gap_s, offsets[:-1])
    pause = (longest_s > STOPS.pause_intervals * interval_s) & (longest_s <= rest_s)
    return gap_s >= np.repeat(np.where(pause, longest_s, np.inf), np.diff(offsets))


def _rests(
    offsets: NDArray[np.int64],
    share: NDArray[np.float64],
    rest_s: NDArray[np.float64],
    duration_s: NDArray[np.float64],
    interval_s: NDArray[np.float64],
    random: np.random.Generator,
) -> NDArray[np.bool_]:
    """Whether each gap belongs to a rest; rests begin and end at the fixes nearest to their times.

    A rest that is recorded at all is longer than the interval; the excess is lognormal, from traffic lights to long
    stops. The number of rests depends on the duration of the trip and not on how long it rests: lengths have a heavy
    tail, so a trip that rests far longer than usual has one long rest. Some rests are at the ends, where people get on
    and off.
    """
    usual_share = rest_s.sum() / duration_s.sum()
    spells = random.poisson(usual_share * duration_s / (interval_s + STOPS.wait_s))
    spells = np.minimum(spells, (rest_s / np.maximum(interval_s, 1e-9)).astype(np.int64))
    spells[(spells == 0) & (rest_s > interval_s / 2)] = 1
    row, own = ragged.owners(spells), ragged.offsets_of(spells)
    spread = STOPS.rest_spread
    length_s = interval_s[row] + STOPS.wait_s * np.exp(spread * random.standard_normal(len(row)) - spread**2 / 2)
    total_s = np.bincount(row, length_s, minlength=len(spells))
    length_s *= np.minimum(rest_s / np.maximum(total_s, 1e-9), 1.0)[row]
    longest = np.lexsort((length_s, row))[own[1:][spells > 0] - 1]
    length_s[longest] += np.maximum(rest_s - total_s, 0.0)[spells > 0]
    length = length_s / duration_s[row]
    at = random.random(len(row))
    # The first and the last rest of a trip.
    for rest, end in ((own[:-1], 0.0), (own[1:] - 1, 1.0)):
        ended = rest[(spells > 0) & (random.random(len(spells)) < STOPS.at_end)]
        at[ended] = end
    begin = at * (1 - length)
    middle = share + 2.0 * ragged.owners(np.diff(offsets))  # one increasing column for all rows
    middle = (middle[1:] + middle[:-1]) / 2
    change = np.zeros(len(share) + 1, np.int64)
    np.add.at(change, np.searchsorted(middle, 2.0 * row + begin) + 1, 1)
    np.add.at(change, np.searchsorted(middle, 2.0 * row + begin + length) + 1, -1)
    return np.cumsum(change[:-1]) > 0


def _waits(
    gap_s: NDArray[np.float64], interval_s: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float64]:
    """Seconds of waits in each gap; waits are exponential, and only those below the sampling interval count."""
    relative = interval_s / STOPS.wait_s
    hidden = STOPS.wait_share * (1 - (1 + relative) * np.exp(-relative))
    wait_s = np.zeros(len(gap_s))
    some = np.flatnonzero(hidden * gap_s > STOPS.least_wait_s)
    number = random.poisson(hidden[some] * gap_s[some] / STOPS.wait_s)
    wait_s[some] = np.minimum(random.standard_gamma(number) * STOPS.wait_s, STOPS.most_waiting * gap_s[some])
    return wait_s
