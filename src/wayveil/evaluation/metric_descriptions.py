"""Short descriptions of the metrics, for tables."""

_CELLS = {
    "density": "share of points in cells of {} m",
    "path_density": "share of path length in cells of {} m",
    "trip": "joint start and end, cells of {} m",
    "start": "where trips start, cells of {} m",
    "end": "where trips end, cells of {} m",
    "endpoints": "where trips start and end, cells of {} m",
}
_PLAIN = {
    "length": "lengths of trips",
    "relation": "whole routes",
    "relation_time": "whole routes and their times",
    "start_hour": "hour of departure",
    "start_week": "weekday and hour of departure",
    "start_place_hour": "place of departure (2 km) at each time of day",
    "duration": "durations",
    "speed": "mean speeds",
    "interval": "sampling intervals",
    "longest_step": "the longest step of each trip",
    "top_speed": "the fastest step of each trip",
    "query_error": "error of counts in random rectangles",
    "coverage_tau": "ranking of places by popularity",
    "pattern_f1": "the most frequent sequences of places",
    "pattern_support": "error of the frequencies of these sequences",
    "trip_6x6": "joint start and end, 6 × 6 cells",
    "diameter": "extent of trips",
    "length_20": "lengths of trips, coarse bins",
}


def metric_description(name: str) -> str:
    """What a metric of `METRICS` compares; empty for an unknown one."""
    family, _, cell_m = name.rpartition("_")
    if family in _CELLS and cell_m.isdigit():
        return _CELLS[family].format(cell_m)
    return _PLAIN.get(name, "")
