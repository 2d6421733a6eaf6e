"""The model of a run: estimates and balanced route costs, which all shards share.

Privacy: free (post-processing).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wayveil.progress import Progress, part, quiet
from wayveil.rules.rule import Rule
from wayveil.synthesis.estimate.estimate import Estimates, estimate
from wayveil.synthesis.obey.steering import binding_rules, crowded_closures, steered_estimates, steered_graph
from wayveil.synthesis.people.estimate import PeopleModel, people_model, without_people
from wayveil.synthesis.request import Request
from wayveil.synthesis.routes.prior import Prior, public_prior
from wayveil.synthesis.routes.router import Router, balance_routes, route_trips
from wayveil.synthesis.trips.candidates import Trips, draw_trips, take_trips


@dataclass(frozen=True)
class ModelSettings:
    """Settings of the stage that balances routes."""

    balance_trips: int = 8_000
    """Trips that route costs are balanced with."""
    tried_trips: int = 2_000
    """Trips that are routed to estimate how many would pass an area at hours when it is closed."""


SETTINGS = ModelSettings()


@dataclass(frozen=True, eq=False)
class Model:
    """The model that every shard is drawn from."""

    estimates: Estimates
    prior: Prior
    router: Router
    rules: tuple[Rule, ...]
    avoided: tuple[Rule, ...] = ()
    """Rules whose area routes avoid at all times, although it is closed at some hours only."""
    people: PeopleModel | None = None
    """What is known about people; None if trips do not belong to people."""


def stream(seed: int | None, number: int) -> np.random.SeedSequence:
    """The source of random numbers for one part of a run: 0 for the model, 1 + k for shard k."""
    return np.random.SeedSequence(seed, spawn_key=(number,)) if seed is not None else np.random.SeedSequence()


def make_model(request: Request, progress: Progress = quiet) -> Model:
    """Estimates and balanced route costs: the part of synthesis that all shards share.

    Trips belong to people if the release answers questions about them, or if a number of people is requested.
    """
    release, rules = request.release, request.rules
    progress("estimating", 0.0)
    people = people_model(release)
    if request.people is None and (people is None or not people.measured):
        people = None
    release = without_people(release)
    prior = public_prior(release.scope, request.roads)
    estimates = estimate(
        release,
        prior.features,
        learned=request.estimator == "learned",
        progress=part(progress, "estimating", 0.1, 0.9),
    )
    estimates = steered_estimates(estimates, binding_rules(rules))
    progress("estimating", 1.0)
    progress("balancing routes", 0.0)
    random = np.random.default_rng(stream(request.seed, 0))
    router, trips = _balanced(estimates, prior, rules, (), random, part(progress, "balancing routes", 0.0, 0.6))
    avoided: tuple[Rule, ...] = ()
    if any(rule.closed_hours() is not None for rule in rules):
        tried = take_trips(trips, np.arange(min(len(trips), SETTINGS.tried_trips)))
        avoided = crowded_closures(rules, route_trips(estimates, router, tried, random), estimates.departure)
    if avoided:
        estimates = steered_estimates(estimates, avoided)
        router, _ = _balanced(estimates, prior, rules, avoided, random, part(progress, "balancing routes", 0.6, 1.0))
    progress("balancing routes", 1.0)
    return Model(estimates, prior, router, tuple(rules), avoided, people)


def _balanced(
    estimates: Estimates,
    prior: Prior,
    rules: Sequence[Rule],
    avoided: Sequence[Rule],
    random: np.random.Generator,
    progress: Progress,
) -> tuple[Router, Trips]:
    """Return routes that obey the rules, and the trips that they were balanced with."""
    trips = draw_trips(estimates, SETTINGS.balance_trips, random, prior.places(estimates.grid))
    progress("balancing routes", 0.2)
    return balance_routes(estimates, steered_graph(prior.graph(estimates), rules, avoided), trips, random), trips
