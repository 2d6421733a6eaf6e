"""Days of the week, as people write them; what is not understood is refused, never read as something else."""

import pytest

from wayveil.errors import RuleError
from wayveil.rules.days import days_of

WORK = [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("text", "days"), [
    ("mon-fri", WORK), ("Mon–Fri", WORK), ("mon to fri", WORK), (["mon-fri"], WORK), ("Mo-Fr", WORK),
    ("weekdays", WORK),
    ("MONDAY - FRIDAY", WORK), (["sat-sun"], [5, 6]), ("weekend", [5, 6]), ("fri-mon", [0, 4, 5, 6]),
    ("mon;tue", [0, 1]), ("mon/tue", [0, 1]), ("mon tue", [0, 1]), (["mon", "tue"], [0, 1]), ("mon, tue,", [0, 1]),
    ("tue - thu, sat", [1, 2, 3, 5]),
    ("Sa. & Su.", [5, 6]), ("sat and sun", [5, 6]), ("mon through fri", WORK),
    ("mon\u2011fri", WORK), ("Tues, thurs", [1, 3]), ("wed", [2]), ("sun-sat", list(range(7))),
    ("daily", list(range(7))),
])  # fmt: skip
def test_days_are_understood(text, days):
    assert days_of(text) == days


@pytest.mark.parametrize("text", [
    "", [], "montag", "someday", "m", "mon-", "-fri", "mon-wed-fri", "mon-foo", [3], 5, None, ["mon", None],
    "x" * 300, "11-12",
])  # fmt: skip
def test_everything_else_is_refused(text):
    with pytest.raises(RuleError, match="mon, tue"):
        days_of(text)
