"""A method of your own: a noisy map of starts and ends, checked and compared with the others.

`python examples/own_method.py` runs the checks, and one run of it beside AdaTrace on a simulated city.
"""

import numpy as np

from wayveil.baselines import Method, Run, load
from wayveil.baselines.conformance import check_method
from wayveil.baselines.grid import draw_systematic, norm_sub, uniform_grid
from wayveil.baselines.mechanism import Features
from wayveil.core.trajectories import Trajectories
from wayveil.evaluation import headline, project

ACROSS = 10


def make(run: Run) -> Trajectories:
    """Count (start cell, end cell) with noise; draw pairs from the noisy counts, and a point in each cell."""
    count = run.count()
    offsets, x_m, y_m = run.data
    grid = uniform_grid(run.box, ACROSS)
    cell = grid.locate(x_m, y_m)
    pair = cell[offsets[:-1]] * ACROSS**2 + cell[offsets[1:] - 1]
    # Each trajectory adds 1 to one pair, so that the sums move by at most 1.
    features = Features(np.arange(len(pair)), pair, np.ones(len(pair)))
    noisy = norm_sub(run.mechanism.sums("pairs", features, ACROSS**4), count)
    drawn = draw_systematic(noisy, run.size(count), run.rng)
    leaf = np.column_stack([drawn // ACROSS**2, drawn % ACROSS**2]).ravel()
    return run.made(np.arange(0, len(leaf) + 1, 2), *grid.draw(leaf, run.rng))


pairs = Method(
    name="pairs",
    reference="this example",
    idea="Noisy counts of start and end cells.",
    protects="one trajectory, added or removed",
    proof="A trajectory is in one pair of cells, and the two shares add up to epsilon.",
    leaks="Not private: box and number of trajectories are exact; noise is floating-point.",
    shares={"count": "0.05", "pairs": "0.95"},
    published_shares={"pairs": "1"},
    make=make,
)


def main() -> None:
    from wayveil.simulate import simulate_city, simulate_trajectories

    for found in check_method(pairs):
        print(f"{found.check}: {found.problem or 'passed'}")
    city = simulate_city(seed=0, size_km=(3, 3))
    real = simulate_trajectories(city, n=400, seed=0)
    paths = project(real, city.scope)
    for method in (pairs, load("adatrace")):
        made = method(real, city.scope, 1, seed=0, n=len(real)).trajectories
        scores = headline(paths, made, city.scope)
        print(method.name, {name: round(value, 3) for name, value in scores.items()})


if __name__ == "__main__":
    main()
