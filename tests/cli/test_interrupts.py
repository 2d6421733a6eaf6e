"""Ctrl-C that a library swallowed is not lost."""

import contextlib
import signal
import threading

import pytest

from wayveil.cli import interrupts
from wayveil.cli.console import progress_bar

pytestmark = pytest.mark.needs("posix")  # signals


def swallowed():
    with contextlib.suppress(BaseException):
        signal.raise_signal(signal.SIGINT)


def test_a_swallowed_interruption_is_raised_at_the_next_step():
    before = signal.getsignal(signal.SIGINT)
    with interrupts.remembered(), progress_bar() as progress:
        progress("working", 0.1)
        swallowed()
        with pytest.raises(KeyboardInterrupt):
            progress("working", 0.2)
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interruption_is_forgotten_with_the_next_command():
    with interrupts.remembered():
        swallowed()
    with interrupts.remembered(), progress_bar() as progress:
        progress("working", 0.1)


def test_an_interruption_is_raised_at_once():
    with interrupts.remembered(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_another_thread_may_run_a_command():
    done = []

    def command():
        with interrupts.remembered(), progress_bar() as progress:
            progress("working", 1.0)
            done.append(True)

    thread = threading.Thread(target=command)
    thread.start()
    thread.join()
    assert done
