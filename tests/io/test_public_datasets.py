"""The public datasets in their published shapes."""

import numpy as np
import pytest

from wayveil.errors import InputError
from wayveil.io.files import read

PLT_HEAD = "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,84\r\n0\r\n"


def geolife(tmp_path):
    for user, name, hour in (("001", "a", 2), ("000", "b", 1), ("000", "a", 0)):
        folder = tmp_path / "Data" / user / "Trajectory"
        folder.mkdir(parents=True, exist_ok=True)
        rows = "".join(f"39.{k},116.{k},0,492,39744.1,2008-10-23,{hour:02}:00:0{k}\r\n" for k in range(1, 4))
        (folder / f"{name}.plt").write_text(PLT_HEAD + rows, newline="")


def test_geolife(tmp_path):
    geolife(tmp_path)
    for root in (tmp_path, tmp_path / "Data"):
        back = read(root)
        assert back.user.tolist() == ["000", "000", "001"]
        assert back.offsets.tolist() == [0, 3, 6, 9]
        assert back.t_utc[:2].tolist() == [1224720001.0, 1224720002.0]
        assert (back.lat[0], back.lon[0]) == (39.1, 116.1)


def test_tdrive_is_on_beijing_time(tmp_path):
    (tmp_path / "1.txt").write_text("1,2008-02-02 15:36:08,116.5,39.5\n1,2008-02-02 15:46:08,116.25,39.25\n")
    (tmp_path / "2.txt").write_text("")
    (tmp_path / "10.txt").write_text("10,2008-02-02 15:36:08,116.5,39.5\n")
    back = read(tmp_path)
    assert back.offsets.tolist() == [0, 2, 3]
    assert back.user.tolist() == ["1", "10"]
    assert back.t_utc[0] == 1201937768.0
    assert read(tmp_path, timezone="UTC").t_utc[0] == 1201937768.0 + 8 * 3600


def test_cabspotting_rides_are_runs_of_passengers(tmp_path):
    rows = [(1, 100), (1, 90), (0, 80), (1, 70), (0, 60), (1, 50), (1, 40)]  # newest first
    text = "".join(f"37.{t} -122.{t} {occupied} {t}\n" for occupied, t in rows)
    (tmp_path / "new_abc.txt").write_text(text)
    (tmp_path / "new_abd.txt").write_text("37.5 -122.5 0 5\n37.5 -122.5 1 4\n")
    back = read(tmp_path)
    assert [run.tolist() for run in np.split(back.t_utc, back.offsets[1:-1])] == [[40, 50], [70], [90, 100], [4]]
    assert back.user.tolist() == ["new_abc"] * 3 + ["new_abd"]


@pytest.mark.parametrize("name", ["new_a.txt", "Data/000/Trajectory/a.plt"])
def test_damage_inside_names_no_file(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n" * 6 + b"37.1 oops\n\x00\xff\n")
    with pytest.raises(InputError) as caught:
        read(tmp_path)
    assert path.name not in str(caught.value) and "oops" not in str(caught.value)


def test_folders_without_a_known_shape(tmp_path):
    with pytest.raises(InputError, match="no known layout"):
        read(tmp_path)
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(InputError, match="no known layout"):
        read(tmp_path)
    with pytest.raises(InputError, match="not a folder"):
        read(tmp_path / "notes.txt", format="geolife")
    with pytest.raises(InputError, match="no usable rows"):
        read(tmp_path, format="cabspotting")


def gpx(path, *starts):
    path.parent.mkdir(parents=True, exist_ok=True)
    tracks = "".join(
        f'<trk><trkseg><trkpt lat="1" lon="2"><time>2026-03-02T{hour:02}:00:00Z</time></trkpt>'
        f'<trkpt lat="1" lon="2"><time>2026-03-02T{hour:02}:05:00Z</time></trkpt></trkseg></trk>'
        for hour in starts
    )
    path.write_text(f'<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">{tracks}</gpx>')


def test_a_folder_of_gpx_files(tmp_path):
    gpx(tmp_path / "b.gpx", 3)
    gpx(tmp_path / "a.GPX", 1, 2)
    (tmp_path / "notes.md").write_text("mine")
    back = read(tmp_path)
    assert np.diff(back.offsets).tolist() == [2, 2, 2] and back.user is None
    assert ((back.t_utc[::2] - back.t_utc[0]) / 3600).tolist() == [0, 1, 2]


def test_gpx_folders_of_several_people(tmp_path):
    gpx(tmp_path / "ann" / "1.gpx", 1)
    gpx(tmp_path / "bob" / "1.gpx", 2, 3)
    assert read(tmp_path).user.tolist() == ["ann", "bob", "bob"]
    (tmp_path / "bob" / "secret-name.gpx").write_text("<gpx>")
    with pytest.raises(InputError) as caught:
        read(tmp_path)
    assert "secret-name" not in str(caught.value) and "bob" not in str(caught.value)
