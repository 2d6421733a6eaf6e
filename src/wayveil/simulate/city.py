"""The simulated city: a scope, its road map, its traffic rules, and its destinations."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wayveil.core.roads import ROAD_CLASSES, RoadMap
from wayveil.core.scope import EARTH_RADIUS_M, Scope
from wayveil.core.week import DAY_S
from wayveil.core.whole_number import as_whole_number
from wayveil.errors import InputError
from wayveil.io.scope_files import read_scope
from wayveil.rules.days import DAYS
from wayveil.simulate.plan import Pattern, Plan, Style, draw_plan
from wayveil.simulate.streets import LIMIT_KMH, Streets, draw_streets, to_roadmap

_SMALLEST_KM, _LARGEST_KM = 2.0, 60.0
"""Limits on the sides of a city: smaller ones have no trips, larger ones take minutes to draw."""


@dataclass(frozen=True, eq=False)
class Closure:
    """An area that is closed to traffic on some days from one hour to another (past midnight if `to_h` < `from_h`)."""

    name: str
    polygon: Any
    from_h: float
    to_h: float
    days: tuple[int, ...]

    def holds(self, week_s: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether it is closed at these seconds since Monday 00:00, including both ends of the hours."""
        hour, day = week_s / 3600 % 24, (week_s // DAY_S).astype(int) % 7
        if self.from_h < self.to_h:
            return (hour >= self.from_h) & (hour <= self.to_h) & np.isin(day, self.days)
        return ((hour >= self.from_h) & np.isin(day, self.days)) | (
            (hour <= self.to_h) & np.isin((day - 1) % 7, self.days)
        )


@dataclass(frozen=True, eq=False)
class HotSpot:
    """A destination: position, extent, weight, and share of leisure trips."""

    name: str
    x_m: float
    y_m: float
    spread_m: float
    weight: float
    leisure: float


@dataclass(frozen=True, eq=False)
class City:
    """A simulated city.

    Privacy: free (simulated data).
    """

    scope: Scope
    roadmap: RoadMap
    rules_geojson: dict[str, Any]
    """The traffic rules as a GeoJSON FeatureCollection, in the format of `wayveil.rules`."""
    streets: Streets
    hot_spots: tuple[HotSpot, ...]
    closures: tuple[Closure, ...]
    home_weight: NDArray[np.float64]
    """(nodes,) share of the population that lives around each junction."""
    seed: int

    def __repr__(self) -> str:
        return f"City({self.scope.name!r}, seed={self.seed}, {len(self.roadmap)} roads)"


def simulate_city(
    seed: int = 0,
    *,
    scope: Scope | None = None,
    size_km: tuple[float, float] | None = None,
    pattern: Pattern = "mixed",
    block_m: float = 125.0,
    hot_spots: int = 9,
    river: bool = True,
    motorway: bool = True,
) -> City:
    """A city from a seed, in the box of the shipped scope `demo-city`, of another scope, or of a given size.

    Parameters
    ----------
    seed : the same seed and options give the same city.
    scope : box, time zone and days; by default those of `demo-city`.
    size_km : (east–west, north–south), instead of the box of `demo-city`.
    pattern : "mixed", "grid" or "organic" districts.
    block_m : length of a block in the centre.
    hot_spots : number of destinations besides homes.

    Privacy
    -------
    Free (simulated data).
    """
    if scope is not None and size_km is not None:
        raise InputError("Give scope= or size_km=, not both.")
    scope = scope or (read_scope("demo-city") if size_km is None else _box_of_size(size_km))
    if not all(0.99 * _SMALLEST_KM <= side / 1000 <= 1.01 * _LARGEST_KM for side in (scope.width_m, scope.height_m)):
        limits = f"{_SMALLEST_KM:g} to {_LARGEST_KM:g} km"
        raise InputError(f"A simulated city must be {limits} wide and high; choose another box.")
    seed = as_whole_number(seed, "seed=", 0)
    style = Style(pattern, block_m, hot_spots, river, motorway)
    rng = np.random.default_rng([seed, 1])
    plan = draw_plan(scope.width_m, scope.height_m, style, rng)
    streets = draw_streets(plan, style, rng)
    closures = _closures(plan)
    spots = _hot_spots(plan, hot_spots, rng)
    homes = _homes(plan, streets, rng)
    rules = _rules(closures, streets, scope)
    return City(scope, to_roadmap(streets, scope), rules, streets, spots, closures, homes, seed)


def _box_of_size(size_km: tuple[float, float]) -> Scope:
    base = read_scope("demo-city")
    width_km, height_km = size_km
    if not all(_SMALLEST_KM <= side <= _LARGEST_KM for side in size_km):
        raise InputError(f"size_km must be two lengths between {_SMALLEST_KM:g} and {_LARGEST_KM:g} km.")
    degree_km = math.radians(1.0) * EARTH_RADIUS_M / 1000
    north = round(base.south + height_km / degree_km, 5)
    middle = math.radians((base.south + north) / 2)
    east = round(base.west + width_km / degree_km / math.cos(middle), 5)
    return Scope.model_validate({
        "name": f"demo-city-{width_km:g}x{height_km:g}", "south": base.south, "west": base.west, "north": north,
        "east": east, "timezone": base.timezone, "first_day": base.first_day, "last_day": base.last_day,
    })  # fmt: skip


def _warped(plan: Plan, polygon: Any) -> Any:
    import shapely

    ring = shapely.segmentize(polygon.exterior, 60.0)
    return shapely.polygons(plan.warp(shapely.get_coordinates(ring))).simplify(1.0)


def _closures(plan: Plan) -> tuple[Closure, ...]:
    """The pedestrian centre by day, the park by night, the surroundings of the stadium on weekends."""
    import shapely
    from shapely import affinity

    def nearest(x_m: float, y_m: float, uses: Sequence[str]) -> Any:
        fitting = [district for district in plan.districts if district.use in uses] or list(plan.districts)
        return min(fitting, key=lambda d: math.hypot(d.polygon.centroid.x - x_m, d.polygon.centroid.y - y_m))

    centre = nearest(*plan.centre, ("centre",))
    park = nearest(*plan.centre, ("park",))
    homes = ("homes", "works", "centre")
    ground = nearest(plan.centre[0] + 0.2 * plan.width_m, plan.centre[1] + 0.2 * plan.height_m, homes)
    side = min(520.0, 0.55 * math.sqrt(ground.polygon.area))
    at = ground.polygon.centroid
    stadium = shapely.box(at.x - side / 2, at.y - 0.4 * side, at.x + side / 2, at.y + 0.4 * side)
    stadium = affinity.rotate(stadium, math.degrees(ground.angle))
    river = plan.river.buffer(130) if plan.river is not None else None
    core = centre.polygon.buffer(-45).intersection(centre.polygon.centroid.buffer(400))
    found = []
    for name, area, from_h, to_h, days in (
        ("Pedestrian centre", core, 10.0, 20.0, range(7)),
        ("City park at night", park.polygon.buffer(-45), 22.0, 6.0, range(7)),
        ("Stadium on match days", stadium, 13.0, 19.0, (5, 6)),
    ):
        area = area if river is None else area.difference(river)
        pieces = [piece for piece in getattr(area, "geoms", [area]) if piece.area > 0]
        if pieces:
            largest = max(pieces, key=lambda piece: piece.area)
            found.append(Closure(name, _warped(plan, largest), from_h, to_h, tuple(days)))
    return tuple(found)


_KINDS = (
    # name, distance from the centre as a share of the distance to the border, spread, weight, share of leisure
    ("Old town", 0.02, 420.0, 5.0, 0.5),
    ("Central station", 0.13, 180.0, 3.0, 0.4),
    ("Business district", 0.10, 380.0, 5.0, 0.1),
    ("University", 0.28, 330.0, 2.2, 0.3),
    ("East mall", 0.45, 200.0, 2.0, 0.95),
    ("Airport", 0.88, 260.0, 1.8, 0.5),
    ("Hospital", 0.33, 170.0, 1.4, 0.2),
    ("Industrial park", 0.65, 520.0, 2.4, 0.02),
    ("West mall", 0.55, 190.0, 1.6, 0.95),
)


def _hot_spots(plan: Plan, count: int, rng: np.random.Generator) -> tuple[HotSpot, ...]:
    found = []
    turn = rng.uniform(0, 2 * math.pi)
    for k in range(count):
        name, share, spread, weight, leisure = _KINDS[k % len(_KINDS)]
        if k >= len(_KINDS):
            name, share, weight = f"Quarter {k + 1}", rng.uniform(0.2, 0.8), rng.uniform(0.5, 2.0)
        angle = turn + k * 2.4  # the golden angle spreads the directions evenly
        x = plan.centre[0] + share * 0.46 * plan.width_m * math.cos(angle)
        y = plan.centre[1] + share * 0.46 * plan.height_m * math.sin(angle)
        place = plan.warp(np.array([[np.clip(x, 0, plan.width_m), np.clip(y, 0, plan.height_m)]]))[0]
        found.append(HotSpot(name, float(place[0]), float(place[1]), spread, weight, leisure))
    return tuple(found)


def _homes(plan: Plan, streets: Streets, rng: np.random.Generator) -> NDArray[np.float64]:
    """Share of the population by junction; some districts are a few times denser than others."""
    import shapely

    far = np.array([math.hypot(d.polygon.centroid.x - plan.centre[0], d.polygon.centroid.y - plan.centre[1])
                    for d in plan.districts]) / math.hypot(plan.width_m, plan.height_m) * 2  # fmt: skip
    use = np.array([{"green": 0.05, "park": 0.02, "works": 0.2}.get(d.use, 1.0) for d in plan.districts])
    density = use * np.exp(rng.normal(0, 0.6, len(far)) - 0.9 * far)
    polygons = [_warped(plan, district.polygon) for district in plan.districts]
    node, district = shapely.STRtree(polygons).query_nearest(shapely.points(streets.node_xy), all_matches=False)
    weight = np.zeros(len(streets.node_xy))
    weight[node] = density[district] * rng.gamma(1.5, size=len(node))
    share: NDArray[np.float64] = weight / weight.sum()
    return share


def _rules(closures: tuple[Closure, ...], streets: Streets, scope: Scope) -> dict[str, Any]:
    import shapely

    features = []
    for closure in closures:
        xy = shapely.get_coordinates(closure.polygon.exterior)
        lon, lat = scope.to_degrees(xy[:, 0], xy[:, 1])
        ring = np.round(np.column_stack([lon, lat]), 7).tolist()
        options: dict[str, Any] = {"rule": "closed", "name": closure.name}
        options |= {"from": _clock(closure.from_h), "to": _clock(closure.to_h)}
        if len(closure.days) < 7:
            options["days"] = [DAYS[day] for day in closure.days]
        features.append(_feature(options, {"type": "Polygon", "coordinates": [ring]}))
    if streets.oneway.any():
        features.append(_feature({"rule": "one_way", "name": "One-way streets of the map"}, None))
    features.append(_feature({"rule": "speed_limit", "name": "Speed limit", "kmh": LIMIT_KMH["motorway"]}, None))
    small = [name for name in ("tertiary", "residential") if name in _class_names(streets)]
    limit = {"rule": "speed_limit", "name": "Speed limit in small streets", "kmh": LIMIT_KMH["tertiary"]}
    features.append(_feature({**limit, "classes": small}, None))
    return {"type": "FeatureCollection", "features": features}


def _class_names(streets: Streets) -> set[str]:
    return {ROAD_CLASSES[index] for index in np.unique(streets.road_class)}


def _clock(hour: float) -> str:
    return f"{int(hour):02d}:{round(hour % 1 * 60):02d}"


def _feature(properties: dict[str, Any], geometry: dict[str, Any] | None) -> dict[str, Any]:
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def rules_text(city: City) -> str:
    """The city's rules file as text."""
    return json.dumps(city.rules_geojson, indent=1, allow_nan=False) + "\n"


def scope_toml(city: City) -> str:
    """The city's scope as TOML text."""
    scope = city.scope
    lines = [
        "# A city simulated by `wayveil simulate`; its residents are not real.",
        f"name = {json.dumps(scope.name)}",
    ]
    lines += [f"{side} = {getattr(scope, side)!r}" for side in ("south", "west", "north", "east")]
    lines.append(f"timezone = {json.dumps(scope.timezone)}")
    if scope.first_day and scope.last_day:
        lines += [f"first_day = {scope.first_day.isoformat()}", f"last_day = {scope.last_day.isoformat()}"]
    caps = scope.caps
    lines += ["", "[caps]", f"points = {caps.points}", f"length_km = {caps.length_km!r}"]
    lines += [f"duration_h = {caps.duration_h!r}", f"speed_kmh = {caps.speed_kmh!r}"]
    return "\n".join(lines) + "\n"
