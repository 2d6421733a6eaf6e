"""Traffic rules: each has a smooth penalty for gradient descent and an exact count of violations.

Nothing here reads private data. Rules come from GeoJSON (`read_rules`), from Python, or from a subclass of `Rule`:

>>> from wayveil.rules import closed, hours, max_duration, speed_limit
>>> from wayveil import read_scope
>>> scope = read_scope("demo-city")
>>> harbour = {"type": "Polygon", "coordinates": [[[-39.95, 30.02], [-39.94, 30.02], [-39.94, 30.03], [-39.95, 30.02]]]}
>>> rules = (closed(harbour, scope, hours("22:00", "06:00")), speed_limit(50), max_duration(2))
>>> print(rules[1].describe())
No step may be faster than 50 km/h anywhere.
"""

from typing import TYPE_CHECKING

from wayveil.core.lazy import lazy_names
from wayveil.rules.area import Area
from wayveil.rules.bounds import StayWithin, scope_bounds, with_scope_bounds
from wayveil.rules.closed import Closed
from wayveil.rules.constructors import closed, max_duration, min_speed, one_way, speed_limit, stay_within
from wayveil.rules.counting import count, violating_trajectories
from wayveil.rules.custom import Custom, custom
from wayveil.rules.geometry import area_of
from wayveil.rules.hours import ALWAYS, Hours, hours
from wayveil.rules.max_duration import MaxDuration
from wayveil.rules.min_speed import MinSpeed
from wayveil.rules.motion import (
    Motion,
    at_last_point,
    at_later_point,
    ground_lengths,
    module_of,
    motion_from_metres,
    motion_of,
    to_jax,
)
from wayveil.rules.one_way import OneWay, map_one_ways
from wayveil.rules.polygons import area_in_metres
from wayveil.rules.route_metres import metres_inside
from wayveil.rules.rule import Rule
from wayveil.rules.speed import SpeedLimit

if TYPE_CHECKING:
    from wayveil.rules.checking import RulesCheck as RulesCheck
    from wayveil.rules.checking import check as check
    from wayveil.rules.draw import draw_rules as draw_rules
    from wayveil.rules.editor import write_editor as write_editor
    from wayveil.rules.geojson import read_rules as read_rules

__all__ = [
    "ALWAYS",
    "Area",
    "Closed",
    "Custom",
    "Hours",
    "MaxDuration",
    "MinSpeed",
    "Motion",
    "OneWay",
    "Rule",
    "RulesCheck",
    "SpeedLimit",
    "StayWithin",
    "area_in_metres",
    "area_of",
    "at_last_point",
    "at_later_point",
    "check",
    "closed",
    "count",
    "custom",
    "draw_rules",
    "ground_lengths",
    "hours",
    "map_one_ways",
    "max_duration",
    "metres_inside",
    "min_speed",
    "module_of",
    "motion_from_metres",
    "motion_of",
    "one_way",
    "read_rules",
    "scope_bounds",
    "speed_limit",
    "stay_within",
    "to_jax",
    "violating_trajectories",
    "with_scope_bounds",
    "write_editor",
]

_HOMES = {
    "RulesCheck": "wayveil.rules.checking",
    "check": "wayveil.rules.checking",
    "draw_rules": "wayveil.rules.draw",
    "read_rules": "wayveil.rules.geojson",
    "write_editor": "wayveil.rules.editor",
}

# Most runs have no rules file, so the modules that read and draw one are imported at first use.
__getattr__ = lazy_names(__name__, _HOMES)
