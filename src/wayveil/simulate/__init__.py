"""The embedded city: an invented place with streets, rules and people, so that everything runs without a download.

>>> from wayveil.simulate import simulate_city, simulate_trajectories
>>> city = simulate_city(seed=0, size_km=(3, 3))
>>> len(simulate_trajectories(city, n=50))
50

Privacy: free (nobody lives there).
"""

from wayveil.simulate.city import City, Closure, HotSpot, rules_text, scope_toml, simulate_city
from wayveil.simulate.generate import simulate_batches, simulate_to_file, simulate_to_parquet, simulate_trajectories

__all__ = [
    "City",
    "Closure",
    "HotSpot",
    "rules_text",
    "scope_toml",
    "simulate_batches",
    "simulate_city",
    "simulate_to_file",
    "simulate_to_parquet",
    "simulate_trajectories",
]
