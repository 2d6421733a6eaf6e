"""What each metric compares, in words for tables."""

_CELLS = {
    "density": "share of points in cells of {} m",
    "path_density": "share of the way in cells of {} m",
    "trip": "start and end together, cells of {} m",
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
    "interval": "seconds from point to point",
    "longest_step": "the longest step of each trip",
    "top_speed": "the fastest step of each trip",
    "query_error": "error of counts in random areas",
    "coverage_tau": "order of places by popularity",
    "pattern_f1": "the most frequent sequences of places",
    "pattern_support": "error of how frequent they are",
    "trip_6x6": "start and end together, 6 × 6 cells",
    "diameter": "extent of trips",
    "length_20": "lengths of trips, coarsely",
}


def metric_words(name: str) -> str:
    """What a metric of `METRICS` compares; an unknown one has no words."""
    family, _, cell_m = name.rpartition("_")
    if family in _CELLS and cell_m.isdigit():
        return _CELLS[family].format(cell_m)
    return _PLAIN.get(name, "")
