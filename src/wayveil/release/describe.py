"""describe: what a release promises, in plain language.

Privacy: free (post-processing).
"""

import math
import os
import textwrap
from typing import Any

from wayveil.privacy.budget import decimal_text
from wayveil.questions.answer import Answer
from wayveil.release.document import read_release
from wayveil.release.release import Release
from wayveil.release.statements import not_promised, promise, protected

NOT_PRIVATE = (
    "This release is NOT private: its noise came from a seeded generator, for a test. Neither it nor anything made "
    "from it may be published."
)

PRIVATE = "This release may be published: it is differentially private, and so is everything made from it."


def describe(release: Release | str | os.PathLike[str]) -> str:
    """Return the promise of a release, what it covers, what it cost and what it does not cover, as plain text.

    Parameters
    ----------
    release
        The result of `wayveil.measure`, or its file.

    Examples
    --------
    >>> import wayveil
    >>> print(wayveil.describe("rides.release.json"))  # doctest: +SKIP
    >>> city = wayveil.simulate.simulate_city(size_km=(3, 3))
    >>> rides = wayveil.simulate.simulate_trajectories(city, 50)
    >>> release = wayveil.measure(rides, city.scope, epsilon=2, unit="trajectory")
    >>> "epsilon = 2" in wayveil.describe(release)
    True

    Privacy
    -------
    Free (post-processing).
    """
    if not isinstance(release, Release):
        release = read_release(os.fspath(release))
    facts = description(release)
    scope = facts["scope"]
    parts = [PRIVATE if release.private else NOT_PRIVATE]
    parts += [
        f"Release of noisy counts about GPS trajectories in '{scope['name']}', made by {release.software}.",
        _section("Protected", [facts["protected"][0].upper() + facts["protected"][1:] + ".", facts["neighbours"]]),
        _section("The promise", facts["promise"]),
        _section("Not promised", facts["not_promised"]),
        _section("What was used", _frame_text(facts)),
        "What it cost (rounded; the exact lines add up to the total)\n" + _table(facts),
    ]
    return "\n\n".join(part if "\n" in part else textwrap.fill(part, 100) for part in parts) + "\n"


def description(release: Release) -> dict[str, Any]:
    """The same as plain values, for `--json`."""
    return {
        "differentially_private": release.private,
        "software": release.software,
        "epsilon": decimal_text(release.epsilon),
        "delta": release.delta,
        "unit": release.unit,
        "max_per_user": release.max_per_user if release.unit == "user" else None,
        "protected": protected(release),
        "neighbours": release.neighbours,
        "promise": promise(release) if release.private else [NOT_PRIVATE],
        "not_promised": not_promised(release),
        "scope": release.scope.model_dump(mode="json"),
        "ledger": [_line(answer) for answer in release.answers],
    }


def _line(answer: Answer) -> dict[str, Any]:
    scale = answer.noise * (math.sqrt(2.0) if answer.gaussian else 1.0)
    least, most = answer.noise_range
    return {
        "name": answer.name,
        "epsilon": float(answer.epsilon),
        "epsilon_exact": decimal_text(answer.epsilon),
        "asks": answer.question.words(),
        "mechanism": answer.mechanism,
        "noise": scale * least,
        "most_noise": scale * most,
        "values": len(answer.noisy),
    }


def _frame_text(facts: dict[str, Any]) -> list[str]:
    scope, caps = facts["scope"], facts["scope"]["caps"]
    days = (
        f"from {scope['first_day']} to {scope['last_day']}" if scope["first_day"] else "on days that are not published"
    )
    hours = f", between {' and '.join(scope['hours'].split('-'))}" if scope["hours"] else ""
    return [
        f"Points between {scope['south']} and {scope['north']} degrees north and between {scope['west']} and "
        f"{scope['east']} degrees east, {days}{hours}, in the time zone {scope['timezone']}. The owner states "
        "that this scope was chosen from public knowledge, not from the data.",
        f"At most {caps['points']} points, {caps['length_km']:g} km and {caps['duration_h']:g} h of each trajectory.",
    ]


def _section(title: str, sentences: list[str]) -> str:
    lines = [textwrap.fill(text, 100, initial_indent="  - ", subsequent_indent="    ") for text in sentences]
    return "\n".join([title, *lines])


def _table(facts: dict[str, Any]) -> str:
    costs = [line["epsilon"] for line in facts["ledger"]]
    rows = [
        (line["name"], f"{cost:.3g}", f"{cost / sum(costs):.1%}", line["asks"])
        for line, cost in zip(facts["ledger"], costs)
    ]
    wide, cost, share = (max(len(row[k]) for row in rows) for k in (0, 1, 2))
    lines = [f"  {name:<{wide}}  {spent:<{cost}}  {part:>{share}}  {asks}".rstrip() for name, spent, part, asks in rows]
    delta = (
        f" and delta = {facts['delta']:g}; the lines are parts of rho, and only the total is a guarantee"
        if facts["delta"]
        else ""
    )
    return "\n".join([*lines, f"  {'total':<{wide}}  epsilon = {facts['epsilon']}{delta}"])
