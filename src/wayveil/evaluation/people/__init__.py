"""Evaluation of people: how the trips of one person are related, in real and in synthetic data."""

from wayveil.evaluation.people.evaluate import PeopleReport, evaluate_people

__all__ = ["PeopleReport", "evaluate_people"]
