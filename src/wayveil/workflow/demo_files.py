"""The folder of a demo: where each file is, and making room for a new one."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from wayveil.errors import InputError
from wayveil.io.atomic import write_text

_MARK = "README.txt"
_README = """\
This folder was made by `wayveil demo`. Everything in it comes from a simulated city.

public/   what a data owner would publish: the noisy release, the synthetic trajectories, and their data sheet
private/  what a data owner would keep: the trajectories, and every comparison with them
city/     public knowledge: scope, road map, traffic rules
ledger/   the privacy ledger of the demo

The next `wayveil demo --force` overwrites it.
"""


@dataclass(frozen=True)
class Files:
    """The paths of all files of a demo."""

    folder: Path

    @property
    def real(self) -> Path:
        return self.folder / "private" / "rides.parquet"

    @property
    def evaluation(self) -> Path:
        return self.folder / "private" / "evaluation.json"

    @property
    def audit(self) -> Path:
        return self.folder / "private" / "audit.json"

    @property
    def report(self) -> Path:
        return self.folder / "private" / "internal-report.html"

    @property
    def release(self) -> Path:
        return self.folder / "public" / "rides.release.json"

    @property
    def synthetic(self) -> Path:
        return self.folder / "public" / "synthetic.parquet"

    @property
    def sheet(self) -> Path:
        return self.folder / "public" / "data-sheet.html"

    @property
    def scope(self) -> Path:
        return self.folder / "city" / "city.toml"

    @property
    def roads(self) -> Path:
        return self.folder / "city" / "roads.parquet"

    @property
    def rules(self) -> Path:
        return self.folder / "city" / "rules.geojson"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger" / "ledger.sqlite"

    @property
    def all_files(self) -> tuple[Path, ...]:
        """All files except those of the ledger."""
        return (self.real, self.evaluation, self.audit, self.report, self.release, self.synthetic, self.sheet,
                self.scope, self.roads, self.rules)  # fmt: skip


def make_room(files: Files, force: bool) -> None:
    """Create the folder; an earlier demo in it is removed with `force`, and anything else is refused."""
    folder = files.folder
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            if not (folder / _MARK).is_file() or not (folder / "ledger").is_dir():
                raise InputError(f"'{folder.name}' already exists and is not an earlier demo; choose another folder.")
            if not force:
                raise InputError(
                    f"'{folder.name}' contains an earlier demo; choose another folder, or overwrite it with force=True."
                )
            for file in files.all_files:
                file.unlink(missing_ok=True)
            shutil.rmtree(folder / "ledger")
        for part in ("public", "private", "city", "ledger"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "private").chmod(0o700)
    except OSError as error:
        raise InputError(f"Cannot write to '{folder.name}': {error.strerror}; choose another folder.") from None
    write_text(folder / _MARK, _README, private=False)
