"""The map of what rests on data: more where counts are loud, nothing where there is only noise, none without places."""

import re

import numpy as np
import pytest

from wayveil.measurement import measure
from wayveil.privacy.noise import SeededNoise
from wayveil.questions.levels import noisy_levels
from wayveil.release.describe import description
from wayveil.release.statements import noise_text, number
from wayveil.report import internal_report, public_sheet, support
from wayveil.report.support import make_support


@pytest.fixture(scope="module")
def measured(small_city, small_real):
    return {
        epsilon: measure(small_real, small_city.scope, epsilon=epsilon, unit="trajectory", noise=SeededNoise(3))
        for epsilon in ("0.01", "10", "1000")
    }


def areas(figure):
    """Cells of each step of the legend, from the runs that are drawn."""
    found = np.zeros(5, int)
    for step, path in re.findall(r'class="rests-(\d)" d="([^"]*)"', figure):
        found[int(step)] = sum(int(width) for width in re.findall(r"M\d+ \d+h(\d+)v1", path))
    return found


def test_more_epsilon_more_data(measured):
    quiet, plain, loud = (make_support(measured[epsilon]) for epsilon in ("0.01", "10", "1000"))
    assert quiet.percent < 5 < plain.percent < 90 < loud.percent
    assert areas(quiet.figure)[0] == areas(quiet.figure).sum()
    assert areas(loud.figure)[4] > areas(plain.figure)[4]


def test_a_detail_states_the_range_of_its_noise(measured):
    release = measured["10"]
    detail, lines = release["occupancy/detail"], {line["name"]: line for line in description(release)["ledger"]}
    finer = noisy_levels([detail])
    least, most = (find([find(level.noise) for level in finer]) for find in (np.min, np.max))
    assert [lines[detail.name][key] for key in ("noise", "most_noise")] == pytest.approx([least, most])
    assert noise_text(detail) == f"± {number(least)} to {number(most)}"
    assert noise_text(release["count"]) == f"± {number(release['count'].noise)}"
    assert lines["count"]["noise"] == lines["count"]["most_noise"] == release["count"].noise
    middle, fine = (level.side * detail.question.grid.cell_m for level in finer)
    assert middle == 4 * fine and fine < 250
    assert lines[detail.name]["asks"] == f"which places are passed through (cells of {middle:g} m and {fine:g} m)"
    assert lines["origin_destination/coarse"]["asks"] == "trips from each region to each region (coarse)"


def test_every_cell_is_drawn_once_and_north_is_up():
    share = np.array([[0.0, 0.0, 0.95], [0.2, 0.2, 0.2]])  # the first row is the southern one
    figure = support._drawing(share)
    assert 'viewBox="0 0 3 2"' in figure and areas(figure).tolist() == [2, 3, 0, 0, 1]
    assert 'class="rests-4" d="M2 1h1v1h-1z"' in figure and 'class="rests-1" d="M0 0h3v1h-3z"' in figure


def test_large_grids_are_pooled(measured, monkeypatch):
    whole = make_support(measured["10"])
    monkeypatch.setattr(support, "_MOST_CELLS", 100)
    monkeypatch.setattr(support, "_MOST_BASE_CELLS", 100)
    small = make_support(measured["10"])
    assert areas(small.figure).sum() <= 100 < areas(whole.figure).sum()
    assert small.cell_m == whole.cell_m and small.percent == pytest.approx(whole.percent, abs=3)


def test_internal_only(measured, small_synthetic, small_real, small_release):
    title = "Where the density is based on data and where on the prior"
    page = internal_report(measured["10"], small_synthetic, small_real)
    assert title in page and page.count('<svg class="rests"') == 1
    public = public_sheet(measured["10"], small_synthetic, notes={"rules": "0"})
    assert title not in public and '<svg class="rests"' not in public
    assert "traffic on a particular street may not be real" in public
    assert "do not compare the maps of different hours" not in public  # hours by place were asked
    few = public_sheet(measured["0.01"], small_synthetic, notes={"rules": "0"})
    assert "do not compare the maps of different hours" in few
    assert 'id="hour"' in public and 'id="hour"' not in few
    assert make_support(small_release) is None  # a release without places
    assert title not in internal_report(small_release, small_synthetic, small_real)
