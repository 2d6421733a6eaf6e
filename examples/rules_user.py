"""Traffic rules: drawn as GeoJSON, or any function of place and time written with jax.numpy."""

import tempfile
from pathlib import Path

import jax.numpy as jnp

import wayveil
from wayveil.rules import count, custom, motion_of, read_rules, speed_limit
from wayveil.simulate import simulate_city, simulate_trajectories


def drawn(scope) -> dict:
    """What geojson.io or QGIS would save: a square in the middle, closed in the morning, and a longest duration."""
    west, east = (scope.west + share * (scope.east - scope.west) for share in (0.45, 0.55))
    south, north = (scope.south + share * (scope.north - scope.south) for share in (0.45, 0.55))
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    market = {"rule": "closed", "name": "Market", "from": "07:00", "to": "12:00", "days": ["mon", "wed", "sat"]}
    return {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "properties": market, "geometry": {"type": "Polygon", "coordinates": [ring]}},
            {"type": "Feature", "properties": {"rule": "max_duration", "hours": 2}, "geometry": None},
        ],
    }


def main() -> None:
    city = simulate_city(size_km=(3, 3))
    scope = city.scope
    quiet_south = custom(
        # Metres inside the southern strip of 200 m, at night; x and y in metres, t in seconds since Monday 00:00.
        lambda x, y, t: jnp.where(t % 86_400 < 5 * 3600, jnp.maximum(200.0 - y, 0.0), 0.0),
        scope,
        name="Quiet south",
        text="Nobody in the southern 200 m between midnight and 05:00.",
    )
    rules = (*read_rules(drawn(scope), scope), speed_limit(80), quiet_south)
    for rule in rules:
        print(f"- {rule.describe()}")
    with tempfile.TemporaryDirectory() as folder:
        account = {"dataset": "rides", "ledger": Path(folder) / "ledger.sqlite"}
        rides = simulate_trajectories(city, n=300)
        release = wayveil.measure(rides, scope, epsilon=1, unit="trajectory", **account)
    synthetic = wayveil.synthesize(release, rules=rules, n=200, seed=1)
    print("before:", synthetic.diagnostics["violations_before"])
    broken = count(rules, motion_of(synthetic.trajectories, scope))
    print("after: ", broken)
    assert all(found["points"] == 0 for found in broken.values())


if __name__ == "__main__":
    main()
