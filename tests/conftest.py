"""What every test shares: private folders, and the real components that tests need.

Being here also lets tests `import stats` (the one alpha).
"""

from collections import Counter

import pytest

from real_components import COMPONENTS, is_obtainable, is_present

MISSING = "missing component"


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """No test touches the ledger, the witnesses or the cache of whoever runs it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg-data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg-state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg-cache"))


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
    config.addinivalue_line("markers", f"needs(*components): any of {', '.join(COMPONENTS)}; skipped without them")


def pytest_collection_modifyitems(items):
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
