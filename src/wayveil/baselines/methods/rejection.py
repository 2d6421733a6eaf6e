"""Reachability by rejection: first-order walks on a grid that are drawn again until they avoid forbidden places.

The "area limit" methods regard the places where nobody can be (water, closed areas) as public and regenerate a walk
until it avoids all of them. Here a walk is refused if it passes a cell that the noisy counts call unreachable, or if it
breaks one of the given rules. Walks that are still refused after the last round are kept and counted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from wayveil.baselines.first_order import Walks
from wayveil.baselines.grid import trace, uniform_grid
from wayveil.baselines.mechanism import by_trajectory
from wayveil.baselines.method import Method, Run
from wayveil.baselines.sequences import direction, drawn_points
from wayveil.core.trajectories import Trajectories, concatenate, select
from wayveil.rules import Rule, motion_of, violating_trajectories

Ints = NDArray[np.int64]

ACROSS = 12
"""Cells of the grid in each direction."""
MOST_ROUNDS = 50_000
"""Rounds after which the authors give up."""
MOST_DRAWN = 5_000_000
"""Maximum number of walks drawn in total, so that the method ends even if no walk obeys the rules."""
STUCK_ROUNDS = 300
"""Rounds in a row without one accepted walk, after which more rounds are hopeless."""


@dataclass(frozen=True)
class Regenerated:
    """Trajectories after rejection, and what it took."""

    trajectories: Trajectories
    rounds: int
    drawn: int
    """Walks drawn, refused ones included."""
    left: int
    """Walks that still break a rule."""


def regenerate(
    draw: Callable[[int], Trajectories],
    refused: Callable[[Trajectories], NDArray[np.bool_]],
    n: int,
    most_rounds: int = MOST_ROUNDS,
) -> Regenerated:
    """Draw `n` walks, and redraw those that are refused until none is or the rounds are used up.

    Privacy: free (post-processing).
    """
    made = draw(n)
    good, drawn, rounds, stuck = [], n, 0, 0
    while True:
        broken = refused(made)
        good.append(select(made, ~broken))
        left = int(broken.sum())
        stuck = stuck + 1 if left == len(made) else 0
        if left == 0 or rounds == most_rounds or drawn >= MOST_DRAWN or stuck > STUCK_ROUNDS:
            good.append(select(made, broken))
            return Regenerated(concatenate(good), rounds, drawn, left)
        made = draw(left)
        rounds, drawn = rounds + 1, drawn + left


def model(run: Run, count: float) -> tuple[Walks, NDArray[np.bool_]]:
    """The model of starts, moves and ends, which weigh 1 together per trajectory, and the unreachable cells.

    Privacy: spends the share "moves".
    """
    grid = uniform_grid(run.box, ACROSS)
    routes = trace(*run.data, grid, min(run.box.width_m, run.box.height_m) / (4 * ACROSS))
    owner, source, target = routes.moves()
    heading, everyone, cells = direction(source, target, ACROSS), np.arange(len(routes)), ACROSS**2
    near = heading >= 0
    features = by_trajectory(
        np.concatenate([everyone, everyone, owner[near]]),
        np.concatenate([routes.start, cells + routes.end, 2 * cells + (source * 9 + heading)[near]]),
    )
    noisy = run.mechanism.sums("moves", features, 11 * cells)
    # Twice the standard deviation of the noise: what is below may be noise alone.
    noisy = np.where(noisy > 2.0 * np.sqrt(2.0) / run.mechanism.epsilon("moves"), noisy, 0.0)
    start, end, move = noisy[:cells], noisy[cells : 2 * cells], noisy[2 * cells :].reshape(cells, 9)
    return Walks(ACROSS, start, move, end), (start + end + move.sum(1)) <= 0


def _ignore(found: Regenerated) -> None:
    pass


def _make(
    run: Run, rules: Sequence[Rule], most_rounds: int, tell: Callable[[Regenerated], None] = _ignore
) -> Trajectories:
    count = run.count()
    walks, unreachable = model(run, count)
    grid = uniform_grid(run.box, ACROSS)

    def refused(made: Trajectories) -> NDArray[np.bool_]:
        x_m, y_m = run.scope.to_metres(made.lon, made.lat)
        bad = np.logical_or.reduceat(unreachable[grid.locate(x_m, y_m)], made.offsets[:-1])
        if unreachable.all():
            bad[:] = False  # nothing is known to be reachable, so nothing can be refused
        return bad | violating_trajectories(rules, motion_of(made, run.scope)) if rules else bad

    def draw(n: int) -> Trajectories:
        return drawn_points(run, grid, walks.draw(n, run.rng))

    found = regenerate(draw, refused, run.size(count), most_rounds)
    tell(found)
    if found.left:
        run.remarks.append(
            f"{found.left} of {len(found.trajectories)} walks still break a rule or pass an unreachable cell after "
            f"{found.rounds} rounds: the walks of this grid hardly ever avoid them, so relax the rules."
        )
    return found.trajectories


rejection = Method(
    name="rejection",
    reference="reachability by rejection (the area-limit methods)",
    idea="First-order walks on a grid, drawn again until they avoid unreachable cells and obey the rules.",
    protects="one trajectory, added or removed",
    proof="A trajectory's starts, moves and ends weigh 1 together; rejection reads noisy counts and public rules only.",
    leaks="Not private: box and number of trajectories are exact; noise is floating-point.",
    shares={"count": "0.05", "moves": "0.95"},
    published_shares={"moves": "1"},
    make=partial(_make, rules=(), most_rounds=MOST_ROUNDS),
    obeys_rules="by drawing again",
)


def rejection_with(
    rules: Sequence[Rule], most_rounds: int = MOST_ROUNDS, tell: Callable[[Regenerated], None] = _ignore
) -> Method:
    """The method for these rules; `tell` is called with the numbers of rounds and walks."""
    return replace(rejection, make=partial(_make, rules=tuple(rules), most_rounds=most_rounds, tell=tell))
