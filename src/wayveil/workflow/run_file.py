"""One TOML file for the whole workflow: measure → synthesize → report."""

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from wayveil.core.roads import check_inside
from wayveil.errors import InputError, in_short
from wayveil.io.inputs import TooLargeError, read_text
from wayveil.io.options import WRITABLE, files_written, writing_format
from wayveil.io.outputs import check_output, check_outputs, check_page
from wayveil.io.replaceable import check_replaceable
from wayveil.io.roads import read_roads
from wayveil.io.scope_files import first_fault, read_scope, shipped_scopes
from wayveil.measurement.signal_check import RUN_FILE, check_signal, count_noise
from wayveil.privacy.budget import decimal_text, exact_delta, exact_epsilon
from wayveil.privacy.ledger import Ledger
from wayveil.privacy.unit import Unit, parse_unit
from wayveil.progress import Progress, quiet
from wayveil.release import read_release
from wayveil.report.from_files import write_report
from wayveil.rules import read_rules
from wayveil.workflow.measure_file import FileMeasurement, measure_file
from wayveil.workflow.synthesize_file import synthesize_file

_MOST_BYTES = 1 << 20
"""A run file has about a kilobyte."""
_LONGEST_PART = 255  # bytes between two slashes, on every common file system


def _printable(text: str) -> str:
    # Names appear in messages, where control characters would act on the terminal.
    if not text.isprintable():
        raise ValueError("control characters are not allowed")
    return text


_Name = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_printable)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Columns(_Strict):
    """How the file is read, if columns are not recognized automatically."""

    format: _Name | None = None
    traj_id: _Name | None = None
    user: _Name | None = None
    lon: _Name | None = None
    lat: _Name | None = None
    time: _Name | None = None
    timezone: _Name | None = None
    line: _Name | None = None
    interval_s: float | None = None
    trip_columns: _Name | dict[_Name, _Name] | None = None
    decimal: Literal[".", ","] = "."
    dayfirst: bool | None = None


class Measure(_Strict):
    """The step that spends privacy budget."""

    file: _Name
    dataset: _Name
    scope: _Name
    epsilon: float | int | str
    unit: Literal["trajectory", "user"]
    max_per_user: Annotated[int, Field(strict=True)] | None = None
    delta: float | int | str = 0
    ledger: _Name | None = None
    expected_trips: Annotated[int, Field(ge=1)] | None = None
    accept_low_signal: bool = False
    columns: Columns = Columns()

    @property
    def protects(self) -> Unit:
        """What is protected."""
        return parse_unit(self.unit, self.max_per_user)


class Synthesize(_Strict):
    """The step that makes trajectories."""

    roads: _Name | None = None
    rules: _Name | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    people: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0)] | None = None
    estimator: Literal["bayes", "learned"] = "learned"


class Output(_Strict):
    """Where results go."""

    release: _Name
    synthetic: _Name
    report: _Name | None = None


class RunFile(_Strict):
    """A run; relative paths are relative to the file."""

    measure: Measure
    synthesize: Synthesize = Synthesize()
    output: Output


def read_run(path: Path) -> RunFile:
    """The run in a TOML file, with absolute paths."""
    try:
        run = RunFile.model_validate(tomllib.loads(read_text(path, _MOST_BYTES)))
    except TooLargeError:
        raise InputError(f"'{path.name}' is larger than 1 MB, so it is not a run file.") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"'{path.name}' cannot be read; wayveil.template('run') is one to fill in.") from None
    except ValidationError as error:
        fault = first_fault(error, "run", RunFile)
        raise InputError(f"'{path.name}': {fault}; see wayveil.template('run').") from None
    except (ValueError, RecursionError) as error:  # TOMLDecodeError, and numbers too long to be read
        why = in_short(error)
        raise InputError(f"'{path.name}' is not valid TOML ({why}); see wayveil.template('run').") from None
    return _with_paths(run, path.absolute().parent)


def _with_paths(run: RunFile, folder: Path) -> RunFile:
    def absolute(name: str | None) -> str | None:
        if name is None or "://" in name:
            return name
        if max(map(len, map(os.fsencode, name.split("/")))) > _LONGEST_PART:
            raise InputError(f"'{in_short(name)}' is too long for a file name.")
        try:
            return str(folder / Path(name).expanduser())
        except RuntimeError:
            raise InputError(f"'{in_short(name)}' begins with ~ and the name of an unknown user.") from None

    scope = run.measure.scope if run.measure.scope in shipped_scopes() else absolute(run.measure.scope)
    measure = {"file": absolute(run.measure.file), "scope": scope, "ledger": absolute(run.measure.ledger)}
    synthesize = {"roads": absolute(run.synthesize.roads), "rules": absolute(run.synthesize.rules)}
    output = {name: absolute(value) for name, value in run.output.model_dump().items()}
    return RunFile(
        measure=run.measure.model_copy(update=measure),
        synthesize=run.synthesize.model_copy(update=synthesize),
        output=run.output.model_copy(update=output),
    )


def run(
    file: str | os.PathLike[str],
    *,
    say: Callable[[str], None] = lambda sentence: None,
    progress: Progress = quiet,
) -> dict[str, Any]:
    """Measure, synthesize and write the data sheet, as described in one TOML file.

    If the release exists already, the run continues from it and spends nothing.

    Parameters
    ----------
    file
        The run file; `wayveil.template("run")` is the text of one to fill in.
    say
        Called with messages, such as how long a large number of trajectories takes.

    Returns
    -------
    dict
        The files written (`release`, `synthetic`, `report`), whether epsilon was `spent`, and a summary of the
        synthetic data.

    Examples
    --------
    >>> import wayveil
    >>> done = wayveil.run("rides.toml")  # doctest: +SKIP
    >>> done["synthetic"], done["spent"]  # doctest: +SKIP

    Privacy
    -------
    Spends ε once, on the dataset that the file names.
    """
    return do_run(read_run(Path(file)), say=say, progress=progress)


def do_run(
    run: RunFile, *, say: Callable[[str], None] = lambda sentence: None, progress: Progress = quiet
) -> dict[str, Any]:
    """Measure unless the release already exists, then synthesize, then write the data sheet.

    Privacy: spends ε once. A run that was interrupted after its release was written continues from it and spends
    nothing; a release that does not match the file is refused.
    """
    measure, synthesize, output = run.measure, run.synthesize, run.output
    release, synthetic = Path(output.release), Path(output.synthetic)
    roads, rules = (None if name is None else Path(name) for name in (synthesize.roads, synthesize.rules))
    _check_all(run)
    spent, other_trips = not release.exists(), synthetic.exists() and synthesize.seed is None
    if spent:
        _check_signal(measure)
        ledger = None if measure.ledger is None else Path(measure.ledger)
        wanted = FileMeasurement(
            measure.file, measure.scope, measure.epsilon, measure.protects, measure.dataset, ledger, measure.delta,
            roads, measure.columns.model_dump(),
        )  # fmt: skip
        measure_file(wanted, release, progress=progress)
    else:
        _check_same(run)
    summary = synthesize_file(
        release, synthetic, roads=roads, rules=rules, n=synthesize.n, people=synthesize.people, seed=synthesize.seed,
        estimator=synthesize.estimator, say=say, progress=progress,
    )  # fmt: skip
    if output.report is not None:
        write_report(release, synthetic, Path(output.report), roads=roads, rules=rules, progress=progress)
    return {"release": str(release), "report": output.report, "spent": spent, "other_trips": other_trips, **summary}


def _check_all(run: RunFile) -> None:
    """Check inputs and outputs as far as possible before anything is spent."""
    measure, synthesize, output = run.measure, run.synthesize, run.output
    kind = _try_inputs(run)
    ledger = Ledger(None if measure.ledger is None else Path(measure.ledger)).path
    inputs = [measure.file, measure.scope, synthesize.roads, synthesize.rules]
    outputs = [*files_written(Path(output.synthetic), kind), Path(output.release), output.report]
    check_outputs(outputs, inputs=inputs, ledger=ledger)
    for path in filter(None, (output.release, output.synthetic, output.report)):
        _make_folder(Path(path))
        check_output(path, force=True)
    check_replaceable(Path(output.synthetic))
    if output.report is not None:
        check_page(Path(output.report))


def _check_signal(measure: Measure) -> None:
    """Stop before anything is read or spent if the noise would hide the data."""
    noise = count_noise(epsilon=measure.epsilon, unit=measure.protects, delta=measure.delta)
    check_signal(
        noise,
        measure.protects,
        expected_trips=measure.expected_trips,
        accept=measure.accept_low_signal,
        delta=exact_delta(measure.delta) > 0,
        wording=RUN_FILE,
    )


def _make_folder(path: Path) -> None:
    """Create the folder of an output, because the run file names it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Cannot create the folder of '{path.name}': {error.strerror}; choose another.") from None


def _try_inputs(run: RunFile) -> str:
    """Read the public inputs, to find their errors early; return the format of the synthetic file."""
    kind = writing_format(Path(run.output.synthetic))
    if kind not in WRITABLE:
        raise InputError(f"output.synthetic must be a file of one of these formats: {', '.join(WRITABLE)}.")
    scope = read_scope(run.measure.scope)
    roads = None if run.synthesize.roads is None else read_roads(run.synthesize.roads)
    if roads is not None:
        check_inside(roads, scope)
    if run.synthesize.rules is not None:
        read_rules(run.synthesize.rules, scope, roads)
    return kind


def _check_same(run: RunFile) -> None:
    found, measure = read_release(run.output.release), run.measure
    promise = exact_epsilon(measure.epsilon), float(exact_delta(measure.delta)), measure.protects
    expected = *promise, read_scope(measure.scope)
    if (found.epsilon, found.delta, Unit(found.unit, found.max_per_user), found.scope) != expected:
        raise InputError(
            f"'{Path(run.output.release).name}' already exists and was measured with other settings (epsilon "
            f"{decimal_text(found.epsilon)}, {found.unit} level); change output.release or move the file."
        )


TEMPLATE = """\
# A wayveil run: `wayveil run FILE.toml` measures, synthesizes and writes the data sheet.
# Relative paths are relative to this file. If output.release already exists, the run continues from it.

[measure]
file = "rides.csv"          # the private trajectories
dataset = "rides"           # the dataset on the ledger whose budget is spent
scope = "my-city.toml"      # the public limits of the data; `wayveil scope new` writes one
epsilon = "1"               # how much privacy to spend
unit = "trajectory"         # or "user", with max_per_user
# max_per_user = 10
# delta = "1e-6"            # Gaussian noise, for an (epsilon, delta) guarantee
# ledger = "ledger.sqlite"  # by default in your data folder
# expected_trips = 5000      # roughly how many; the run stops if noise would hide them
# accept_low_signal = true   # measure anyway

# [measure.columns]         # only if columns are not recognized automatically
# traj_id = "ride"
# user = "driver"
# lat = "y"
# lon = "x"
# time = "when"
# timezone = "Europe/Paris" # of times without a time zone

[synthesize]
# roads = "roads.parquet"   # a public road map
# rules = "rules.geojson"   # traffic rules
# n = 10000                 # by default the noisy count
# seed = 1                  # the same trips in every run; without it, every run makes different trips

[output]
release = "rides.release.json"
synthetic = "synthetic.parquet"
report = "rides.html"
"""
