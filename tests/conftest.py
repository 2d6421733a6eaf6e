"""What every test shares: private folders, one cache of compiled functions, and the real components that tests need.

Being here also lets tests `import stats` (the one alpha).
"""

import os
import tempfile
from collections import Counter

# pytest-xdist keeps every core busy. Threads of BLAS would only wait for each other. Set before anything imports numpy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Most programs run once: compiling them takes longer. JAX_DISABLE_MOST_OPTIMIZATIONS=0 compiles as users do.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from real_components import COMPONENTS, is_obtainable, is_present
from repeatable import patched

MISSING = "missing component"

# The same examples in every run, and no limits in seconds: a busy machine must not fail a test.
# HYPOTHESIS_PROFILE=explore draws new examples.
_UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("stable", derandomize=True, **_UNTIMED)
settings.register_profile("explore", derandomize=False, **_UNTIMED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "stable"))

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """No test touches the ledger, the witnesses or the cache of whoever runs it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg-data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg-state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg-cache"))


@pytest.fixture(scope="session")
def known_estimates():
    """Estimates by the release that they were made of; see `estimated_once`."""
    return {}


@pytest.fixture
def estimated_once(monkeypatch, known_estimates):
    """Equal releases with equal maps are estimated once; not for tests that change an estimator."""
    from wayveil.release import release_to_json
    from wayveil.synthesis import model

    estimate = model.estimate

    def remembered(release, road_features=(), **options):
        key = release_to_json(release), *(field.tobytes() for field in road_features), options["learned"]
        if key not in known_estimates:
            known_estimates[key] = estimate(release, road_features, **options)
        return known_estimates[key]

    monkeypatch.setattr(model, "estimate", remembered)


@pytest.fixture
def quick_synthesis(monkeypatch, estimated_once):
    """Routes are balanced with few trips: for tests of what surrounds synthesis, such as files, frames and messages."""
    from wayveil.synthesis import model

    monkeypatch.setattr(model, "SETTINGS", model.ModelSettings(balance_trips=800, tried_trips=400))


@pytest.fixture
def repeatable_noise(monkeypatch):
    """Measurements without `noise=` have the same noise in every run (see `repeatable`); not in child processes."""
    patched(monkeypatch)


@pytest.fixture
def optimised():
    """Programs are compiled with all optimisations, as they are for users: for tests of rounding and of memory."""
    import jax

    usual = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", usual)


@pytest.fixture
def untraced(monkeypatch):
    """Child processes run without coverage, which could not save its data under a limit on the size of files."""
    for name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):
        monkeypatch.delenv(name, raising=False)


def pytest_addoption(parser):
    parser.addoption(
        "--require-real",
        action="store_true",
        help="fail if a test was skipped, unless this machine cannot have the component that the test needs",
    )


def pytest_configure(config):
    _share_compiled_functions(config)
    config.addinivalue_line("markers", f"needs(*components): any of {', '.join(COMPONENTS)}; skipped without them")


def _share_compiled_functions(config):
    """One folder of functions compiled by jax, for all workers and child processes of this run.

    Every rule that is read anew is compiled anew, which takes seconds. Workers inherit the environment of the process
    that starts them.
    """
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="wayveil-tests-", ignore_cleanup_errors=True)
        config.add_cleanup(folder.cleanup)
        os.environ["JAX_COMPILATION_CACHE_DIR"] = folder.name
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")


def pytest_collection_modifyitems(items):
    slow = tuple(line for line in (HERE / "slow.txt").read_text().splitlines() if not line.startswith("#"))
    for item in items:
        if item.nodeid.startswith(slow):
            item.add_marker("slow")
    for item in items:
        needed = {name for mark in item.iter_markers("needs") for name in mark.args}
        if unknown := needed - COMPONENTS.keys():
            raise pytest.UsageError(f"{item.nodeid} needs {', '.join(sorted(unknown))}: see tests/real_components.py")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    needed = dict.fromkeys(name for mark in item.iter_markers("needs") for name in mark.args)
    missing = [name for name in needed if not is_present(name)]
    if missing:
        # User properties travel from the workers of pytest-xdist to the process that writes the summary.
        item.user_properties += [(MISSING, name) for name in missing]
        pytest.skip(f"needs {', '.join(missing)}")


def skipped_for(report) -> tuple[str, ...]:
    """Names of the declared components whose absence skipped a test; none for every other skip."""
    return tuple(value for key, value in getattr(report, "user_properties", ()) if key == MISSING)


def is_excused(report) -> bool:
    """Whether a skip is acceptable with --require-real: a needed component is missing and cannot be had here."""
    return any(not is_obtainable(name) for name in skipped_for(report))


def skip_reasons(reports) -> list[str]:
    """One line for each reason, with the number of tests and the remedy."""
    lines = []
    for missing, count in Counter(skipped_for(report) for report in reports if skipped_for(report)).items():
        remedy = "; ".join(COMPONENTS[name].remedy for name in missing)
        lines.append(f"{count} skipped: {', '.join(missing)} missing ({remedy})")
    for report in reports:
        if not skipped_for(report):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            lines.append(f"1 skipped: {report.nodeid}: {reason.removeprefix('Skipped: ')}")
    return lines


def pytest_terminal_summary(terminalreporter, config):
    skipped = terminalreporter.stats.get("skipped", [])
    terminalreporter.section("real components")
    absent = [name for name in COMPONENTS if not is_present(name)]
    terminalreporter.line(f"present: {', '.join(name for name in COMPONENTS if name not in absent)}")
    if absent:
        terminalreporter.line(f"missing: {', '.join(absent)}")
    for line in skip_reasons(skipped) or ["nothing was skipped"]:
        terminalreporter.line(line)
    if config.getoption("--require-real"):
        for line in skip_reasons([report for report in skipped if not is_excused(report)]):
            terminalreporter.line(f"--require-real: {line}", red=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """With --require-real a run that is green but for unexcused skips fails."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not session.config.getoption("--require-real") or exitstatus != pytest.ExitCode.OK:
        return
    if not all(map(is_excused, reporter.stats.get("skipped", []))):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
