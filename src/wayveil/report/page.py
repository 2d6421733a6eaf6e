"""One self-contained HTML page from a sheet: no external request, everything inlined and escaped."""

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from wayveil.core.roads import RoadMap
from wayveil.core.trajectories import Trajectories
from wayveil.core.web import asset, script_json
from wayveil.errors import InputError
from wayveil.release import Release
from wayveil.report.data_sheet import Sheet, make_sheet
from wayveil.report.differences import differences
from wayveil.report.figures import figures, quantities
from wayveil.report.internal import make_internal
from wayveil.report.map_data import map_data
from wayveil.report.support import make_support
from wayveil.report.trip_pictures import trip_pictures


def public_sheet(
    release: Release,
    synthetic: Trajectories,
    *,
    roads: RoadMap | None = None,
    rules: Sequence[Any] | None = None,
    notes: Mapping[str, str] | None = None,
) -> str:
    """The public data sheet as HTML, from the release, the synthetic data and public maps and rules only.

    `notes` are what the synthetic data says about itself: `wayveil.synthesize(...).notes`, or a file's metadata.

    Privacy: free (post-processing).
    """
    sheet = make_sheet(release, synthetic, roads=roads, rules=rules, notes=notes)
    return render(sheet, sheet.map, sheet.figures, f"Synthetic trajectories of {sheet.place}")


def internal_report(
    release: Release,
    synthetic: Trajectories,
    real: Trajectories,
    *,
    roads: RoadMap | None = None,
    rules: Sequence[Any] | None = None,
    evaluation: Any | None = None,
    audit: Mapping[str, Any] | None = None,
    notes: Mapping[str, str] | None = None,
) -> str:
    """Return the internal report as HTML.

    It begins with a verdict by use and shows real and synthetic data side by side, where they differ, the metrics with
    their floor and interval, single trips, the audit's verdict, and where the density rests on data.

    Parameters
    ----------
    evaluation : what `wayveil.evaluation.evaluate` returns, or its `to_dict()`.
    audit : the JSON object of `wayveil audit`.
    notes : what the synthetic file says about itself.

    Privacy: not private (trusted side only).
    """
    if len(real) == 0:
        raise InputError("The private data is empty; use real= to give the file that was measured.")
    sheet = make_sheet(release, synthetic, roads=roads, rules=rules, notes=notes)
    scope = release.scope
    drawings = figures(quantities(synthetic, scope), quantities(real, scope), sheet.errors)
    map_json = map_data(scope, {"Real": real, "Synthetic": synthetic}, roads, rules or ())
    map_json["uncertain"] = sheet.map["uncertain"]
    title = f"{sheet.place}: real against synthetic"
    pictures = trip_pictures(real, synthetic, scope)
    own = make_internal(evaluation, audit, make_support(release), pictures, differences(real, synthetic, scope))
    return render(sheet, map_json, drawings, title, internal=own)


def render(
    sheet: Sheet, map_json: dict[str, Any], figures: Sequence[str], title: str, internal: Any | None = None
) -> str:
    """Render a sheet; all text is escaped, except the figures, style and script of wayveil itself."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html.j2").render(
        sheet=sheet,
        internal=internal,
        title=title,
        map=map_json,
        figures=[Markup(figure) for figure in figures],
        css=Markup(asset("base.css") + asset("map.css") + _template("page.css") + _template("verdict.css")),
        js=Markup(asset("map.js") + _template("report_map.js")),
        map_json=Markup(script_json(map_json)),
    )


def _template(name: str) -> str:
    return (resources.files("wayveil.report") / "templates" / name).read_text(encoding="utf-8")
