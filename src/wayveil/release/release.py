"""Release: noisy answers, what they cost, and what they promise."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from wayveil.errors import ReleaseError
from wayveil.questions.answer import Answer
from wayveil.scope import Scope


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy answers, what they cost, and the promise in words.

    Privacy: free (everything in it has been paid for).
    """

    scope: Scope
    answers: tuple[Answer, ...]
    epsilon: Fraction
    delta: float
    unit: Literal["trajectory", "user"]
    max_per_user: int
    neighbours: str
    """The neighbouring relation in plain words."""
    private: bool
    """False where the noise was injected by a test; nothing made from such a release may be published."""
    software: str

    def __post_init__(self) -> None:
        names = [answer.name for answer in self.answers]
        if len(set(names)) != len(names):
            raise ReleaseError("Two answers of the release have the same name.")

    @property
    def ledger(self) -> tuple[tuple[str, Fraction], ...]:
        """(name, ε) of each answer; they add up to `epsilon`."""
        return tuple((answer.name, answer.epsilon) for answer in self.answers)

    def __getitem__(self, name: str) -> Answer:
        for answer in self.answers:
            if answer.name == name:
                return answer
        raise ReleaseError(f"The release has no answer '{name}'; it was made for another version of wayveil.")

    def __contains__(self, name: str) -> bool:
        return any(answer.name == name for answer in self.answers)
