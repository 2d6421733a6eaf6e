"""A simulated city with streets, rules and residents, so that examples and tests need no download.

>>> from wayveil.simulate import simulate_city, simulate_trajectories
>>> city = simulate_city(seed=0, size_km=(3, 3))
>>> len(simulate_trajectories(city, n=50))
50

Privacy: free (simulated data).
"""

from wayveil.simulate.city import City, Closure, HotSpot, rules_text, scope_toml, simulate_city
from wayveil.simulate.files import check_city_files, write_city
from wayveil.simulate.generate import (
    DETAILED,
    Behaviour,
    simulate_batches,
    simulate_to_file,
    simulate_to_parquet,
    simulate_trajectories,
)

__all__ = [
    "DETAILED",
    "Behaviour",
    "City",
    "Closure",
    "HotSpot",
    "check_city_files",
    "rules_text",
    "scope_toml",
    "simulate_batches",
    "simulate_city",
    "simulate_to_file",
    "simulate_to_parquet",
    "simulate_trajectories",
    "write_city",
]
