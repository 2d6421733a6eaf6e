"""Every metric by name, in the order of the tables."""

from collections.abc import Iterable

from wayveil.errors import InputError
from wayveil.evaluation import adatrace_metrics as ada
from wayveil.evaluation import metrics as m
from wayveil.evaluation.metrics import Metric

METRICS: dict[str, Metric] = {
    "length": m.length,
    "density_100": m.density.at(cell_m=100.0),
    "endpoints_100": m.endpoints.at(cell_m=100.0),
    "trip_1000": m.trip.at(cell_m=1000.0),
    "relation": m.relation,
    "density_500": m.density.at(cell_m=500.0),
    "density_1000": m.density.at(cell_m=1000.0),
    "path_density_100": m.path_density.at(cell_m=100.0),
    "path_density_500": m.path_density.at(cell_m=500.0),
    "trip_100": m.trip.at(cell_m=100.0),
    "trip_500": m.trip.at(cell_m=500.0),
    "trip_2000": m.trip.at(cell_m=2000.0),
    "start_100": m.start.at(cell_m=100.0),
    "start_500": m.start.at(cell_m=500.0),
    "end_100": m.end.at(cell_m=100.0),
    "end_500": m.end.at(cell_m=500.0),
    "relation_time": m.relation_time,
    "start_hour": m.start_hour,
    "start_week": m.start_week,
    "start_place_hour": m.start_place_hour.at(cell_m=2000.0),
    "duration": m.duration,
    "speed": m.speed,
    "interval": m.interval,
    "longest_step": m.longest_step,
    "top_speed": m.top_speed,
    "query_error": ada.query_error,
    "coverage_tau": ada.coverage_tau,
    "pattern_f1": ada.pattern_f1,
    "pattern_support": ada.pattern_support,
    "trip_6x6": ada.trip_6x6,
    "diameter": ada.diameter,
    "length_20": ada.length_20,
}
HEADLINE = ("length", "density_100", "endpoints_100", "trip_1000", "relation")
"""The metrics that benchmarks need."""


def selected_metrics(names: Iterable[str] | None, with_time: bool) -> list[str]:
    """The metrics to compute, in the order of the table."""
    wanted = list(METRICS) if names is None else list(names)
    unknown = [name for name in wanted if name not in METRICS]
    if unknown:
        raise InputError(f"Unknown metric '{unknown[0]}'; choose from {', '.join(METRICS)}.")
    return [name for name in wanted if with_time or not METRICS[name].needs_time]
