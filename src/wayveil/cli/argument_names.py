"""Messages of the library name Python arguments; the command line shows them as options.

`timezone="Europe/Paris"` becomes `--timezone Europe/Paris`, `force=True` becomes `--force`, and `wayveil.check()`
becomes `wayveil check`.
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
    "allow_unmarked",
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
    "mode",
    "parts",
    "people",
    "quick",
    "real",
    "reason",
    "roads",
    "rules",
    "rules_factor",
    "scope",
    "seed",
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
    "zones",
]
_PHRASES = {
    'on_bad_rows="drop"': "--drop-bad-rows",
    "extend=False": "--no-align",
    "wayveil.Ledger().table()": "`wayveil ledger show`",
    "wayveil.check()": "`wayveil check`",
    "wayveil.check(data, scope)": "`wayveil check FILE --scope SCOPE`",
    "wayveil.convert(split_minutes=10)": "`wayveil convert --split-minutes 10`",
    "wayveil.evaluate()": "`wayveil evaluate`",
    "wayveil.template('run') is": "`wayveil run --template` prints",
    "wayveil.template('run')": "`wayveil run --template`",
    "wayveil.template('scope') is": "`wayveil scope new` writes",
    "wayveil.template('scope')": "`wayveil scope new`",
}
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
