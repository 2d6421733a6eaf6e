"""The real components that tests need beyond wayveil's own dependencies, declared in one place.

A test names what it needs with ``@pytest.mark.needs("ray")``. Where a component is missing, the test is skipped and the
summary says why. With ``--require-real`` a skip fails the run, unless this machine cannot have the component.
"""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@dataclass(frozen=True)
class Component:
    """Something outside wayveil that a test needs.

    ``obtainable`` says whether this machine could have the component although it is missing now.
    """

    name: str
    present: Callable[[], bool]
    obtainable: Callable[[], bool]
    remedy: str


def find_chromium() -> str | None:
    """Path of a Chromium, from $CHROMIUM or the usual names."""
    return os.environ.get("CHROMIUM") or next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


def ordinary_user_prefix() -> list[str] | None:
    """Command prefix under which file permissions apply: setpriv for root, nothing for others, None if impossible."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    return [setpriv, "--bounding-set", "-dac_override,-dac_read_search"] if setpriv else None


def _strace_works() -> bool:
    """Whether strace is installed and may trace a process; many containers forbid that."""
    strace = shutil.which("strace")
    traced = [strace, "-o", os.devnull, sys.executable, "-S", "-c", ""] if strace else ["false"]
    return subprocess.run(traced, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


def _debian_offers(package: str) -> bool:
    """Whether root could install a package with apt on this machine, as `.ci/run` does."""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("apt-cache"):
        return False
    return subprocess.run(["apt-cache", "show", package], capture_output=True).returncode == 0


def _package(module: str, extra: str = "dev") -> Component:
    """A Python package of the development extra: every machine that can install the extra can have it."""
    found = functools.partial(importlib.util.find_spec, module)
    return Component(module, lambda: found() is not None, lambda: True, f"pip install -e '.[{extra}]'")


def _platform(name: str, present: bool) -> Component:
    """A property of the operating system, which cannot be installed."""
    return Component(name, lambda: present, lambda: False, "use another operating system")


COMPONENTS = {
    component.name: component
    for component in (
        _package("ray"),
        _package("pandas"),
        _package("polars"),
        _package("geopandas"),
        _package("duckdb"),
        _package("networkx"),
        _package("dp_accounting"),
        _package("sklearn"),
        Component(
            "chromium",
            lambda: find_chromium() is not None,
            lambda: _debian_offers("chromium"),
            "apt-get install chromium, or set $CHROMIUM",
        ),
        # An installed strace that may not trace is a restriction of the container, not something to install.
        Component(
            "strace",
            _strace_works,
            lambda: shutil.which("strace") is None and _debian_offers("strace"),
            "apt-get install strace, and allow ptrace in the container",
        ),
        Component(
            "file permissions",
            lambda: os.name == "posix" and ordinary_user_prefix() is not None,
            lambda: _debian_offers("util-linux"),
            "run as an ordinary user, or install setpriv",
        ),
        _platform("posix", os.name == "posix"),
        _platform("linux", sys.platform.startswith("linux")),
    )
}


@functools.cache
def is_present(name: str) -> bool:
    """Whether a declared component can be used here."""
    return COMPONENTS[name].present()


@functools.cache
def is_obtainable(name: str) -> bool:
    """Whether a missing component could be had on this machine."""
    return COMPONENTS[name].obtainable()
