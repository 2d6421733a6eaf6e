"""Messages of the library name Python arguments; the command line shows them as options.

`timezone="Europe/Paris"` becomes `--timezone Europe/Paris`, and `force=True` becomes `--force`.
"""

import re

_RENAMED = {
    "traj_id": "--traj-column",
    "user": "--user-column",
    "lon": "--lon-column",
    "lat": "--lat-column",
    "time": "--time-column",
    "n": "-n",
    "time_scale_mps": "--time-scale",
    "line": "--line-column",
    "interval_s": "--interval-seconds",
}
_SAME_NAME = [
    "address",
    "audit",
    "confidence",
    "dataset",
    "dayfirst",
    "days",
    "decimal",
    "datasets",
    "delta",
    "dim",
    "engine",
    "epsilon",
    "epsilons",
    "estimator",
    "evaluation",
    "expected_trips",
    "force",
    "format",
    "holdout",
    "internal",
    "iterations",
    "jobs",
    "learning_rate",
    "ledger",
    "loss",
    "max_per_user",
    "methods",
    "metric",
    "people",
    "quick",
    "real",
    "roads",
    "rules",
    "rules_factor",
    "scope",
    "size_km",
    "split_minutes",
    "subset",
    "times",
    "timezone",
    "to",
    "total_delta",
    "trip_columns",
    "trips",
    "unit",
    "users",
    "yes",
]
_PHRASES = {'on_bad_rows="drop"': "--drop-bad-rows", "extend=False": "--no-align"}
_OPTIONS = _RENAMED | {name: "--" + name.replace("_", "-") for name in _SAME_NAME}
_ARGUMENT = re.compile(rf"""(?<![\w'"./=-])({"|".join(_OPTIONS)})=(?:(["'])(.*?)\2|(\d[\d.]*\d|\d)|True\b)?""")


def as_options(message: object) -> str:
    """The message with options in place of Python arguments.

    Examples
    --------
    >>> as_options('Use unit="trajectory", or name the column with user=.')
    'Use --unit trajectory, or name the column with --user-column.'
    """
    text = str(message)
    for phrase, option in _PHRASES.items():
        text = text.replace(phrase, option)
    return _ARGUMENT.sub(_option, text)


def _option(found: "re.Match[str]") -> str:
    value = found[3] or found[4]
    return _OPTIONS[found[1]] + (f" {value}" if value else "")
