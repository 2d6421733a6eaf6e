"""The command line as a person has it: arguments in, exit code and both streams out."""

import sys
from dataclasses import dataclass

import pytest

from wayveil.cli.main import main


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


@pytest.fixture
def wayveil(monkeypatch, capsys, tmp_path, quick_synthesis, repeatable_noise):
    """wayveil("measure", ...) -> Said; relative paths are in the test's own folder, noise is the same in every run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["wayveil", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        streams = capsys.readouterr()
        return Said(stop.value.code, streams.out, streams.err)

    return call
