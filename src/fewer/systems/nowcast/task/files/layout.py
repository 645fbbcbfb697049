"""Where the competition keeps its files, which region-years a folder holds, and which ones each contest asks for."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fewer.core.errors import UserError
from fewer.core.settings import nearest

__all__ = [
    "CONTESTS",
    "CORE",
    "LAYOUTS",
    "SPLITS",
    "TRANSFER",
    "Layout",
    "Place",
    "found_places",
    "is_competition",
    "layout_of",
    "radar_places",
    "read_layout",
]

SPLITS = ("train", "validation", "test", "heldout")
CORE = ("boxi_0015", "boxi_0034", "boxi_0076", "roxi_0004", "roxi_0005", "roxi_0006", "roxi_0007")
TRANSFER = ("roxi_0008", "roxi_0009", "roxi_0010")


class Place(NamedTuple):
    """A region in a year: what the competition scores as one."""

    region: str
    year: int

    def __str__(self) -> str:
        return f"{self.region} {self.year}"


CONTESTS: dict[str, tuple[Place, ...]] = {
    "stage1": tuple(Place(region, 2019) for region in CORE[:3]),
    "core": tuple(Place(region, year) for year in (2019, 2020) for region in CORE),
    "transfer": tuple(
        [Place(region, year) for year in (2019, 2020) for region in TRANSFER]
        + [Place(region, 2021) for region in CORE + TRANSFER]
    ),
}


@dataclass(frozen=True)
class Layout:
    """Names as templates of {year}, {short} (its last two digits), {region} and {split}, below the data's root."""

    satellite: str = "{year}/HRIT/{region}.{split}.reflbt0.ns.h5"
    radar: str = "{year}/OPERA/{region}.{split}.rates.crop.h5"
    satellite_key: str = "REFL-BT"
    radar_key: str = "rates.crop"
    times: tuple[str, ...] = ("timestamps_and_splits_stage2.csv", "timestamps_and_splits_{year}.csv")
    train: str = "train"
    validation: str = "val"
    test: str = "test"
    heldout: str = "heldout"

    def word(self, split: str, year: int) -> str:
        """What a split is called in the names of that year's files."""
        if split not in SPLITS:
            raise UserError(f"split {split!r}", f"one of {', '.join(SPLITS)}", nearest(split, SPLITS))
        return str(getattr(self, split)).format(year=year, short=f"{year % 100:02d}")

    def path(self, root: Path, product: str, place: Place, split: str) -> Path:
        """The file of `satellite` or `radar`; whether it exists is another question."""
        template, year = str(getattr(self, product)), place.year
        return root / template.format(
            year=year, short=f"{year % 100:02d}", region=place.region, split=self.word(split, year)
        )

    def time_tables(self, root: Path, year: int) -> list[Path]:
        """Existing csv files that may speak of that year, the most likely first; `data/` is the starter kit's place."""
        names = [name.format(year=year, short=f"{year % 100:02d}") for name in self.times]
        return [path for folder in (root, root / "data") for name in names if (path := folder / name).is_file()]


# 2023 kept the names of 2022; of 2024 only training and the two tests are known, so name the others yourself.
LAYOUTS = {
    "2022": Layout(),
    "2023": Layout(),
    "2024": Layout(
        radar="{year}/OPERA-CONTEXT/{region}.{split}.rates.crop.h5",
        train="train{short}",
        validation="val{short}",
        test="cum1test{short}",
        heldout="ev1test{short}",
    ),
}


def layout_of(root: Path, word: str = "") -> Layout:
    """The layout named, else that of the folder's own `layout.toml`, else the first whose names are found there."""
    if word or not root.is_dir():
        return read_layout(word or "2022")
    if (root / "layout.toml").is_file():
        return read_layout(str(root / "layout.toml"))
    for layout in LAYOUTS.values():
        if _held(root, layout, layout.satellite):
            return layout
    return LAYOUTS["2022"]


def is_competition(root: Path) -> bool:
    """Whether a folder holds the competition's files, under whichever year's names or its own `layout.toml`."""
    held = any(_held(root, layout, layout.satellite) for layout in LAYOUTS.values())
    return held or (root / "layout.toml").is_file()


def read_layout(word: str) -> Layout:
    """A year's name, or a .toml file with fields of `Layout` that differ from 2022's."""
    if word in LAYOUTS:
        return LAYOUTS[word]
    path = Path(word)
    if path.suffix != ".toml":
        raise UserError(f"layout {word!r}", "a competition's year or a .toml file", nearest(word, list(LAYOUTS)))
    names = {field.name for field in dataclasses.fields(Layout)}
    try:
        given = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(
            f"layout {word} ({error})", "a TOML file", "see fewer.systems.nowcast.task.files.layout"
        ) from None
    for name, value in given.items():
        wanted = list if name == "times" else str
        if name not in names or not isinstance(value, wanted):
            raise UserError(f"{name} = {value!r} in {word}", f"a {wanted.__name__}", nearest(name, sorted(names)))
    times = tuple(str(name) for name in given.pop("times", Layout.times))
    layout = Layout(times=times, **given)
    try:
        for product in ("satellite", "radar"):
            layout.path(Path(), product, Place("region", 2000), "train")
    except (KeyError, IndexError, ValueError) as error:
        raise UserError(f"a template in {word} with {error}", "{year}, {short}, {region} and {split} alone") from None
    return layout


def found_places(
    root: Path, layout: Layout, *, regions: Sequence[str] = (), years: Sequence[int] = ()
) -> tuple[Place, ...]:
    """Region-years with a satellite file, sorted by year and region; every region and year asked for must be there."""
    if not root.is_dir():
        raise UserError(f"data {root}", "a folder", "--set data=DIR if it moved; --generate makes one")
    places = _held(root, layout, layout.satellite)
    for name, asked, held in (
        ("region", regions, {place.region for place in places}),
        ("year", years, {place.year for place in places}),
    ):
        for one in asked:
            if one not in held:
                has = ", ".join(str(value) for value in sorted(held)) or f"no {name} at all"
                raise UserError(f"{name} {one} in {root}", f"one of those there: {has}", "fewer data nowcast --check")
    kept = [p for p in places if (not regions or p.region in regions) and (not years or p.year in years)]
    if not kept:
        example = layout.path(root, "satellite", Place(CORE[0], 2019), "train")
        raise UserError(f"{root} without satellite files", f"files such as {example}", "or name another layout")
    return tuple(sorted(kept, key=lambda place: (place.year, place.region)))


def radar_places(root: Path, layout: Layout) -> set[Place]:
    """Region-years with a radar file."""
    return _held(root, layout, layout.radar)


def _held(root: Path, layout: Layout, template: str) -> set[Place]:
    """Region-years with a file of that name."""
    files = root.glob(re.sub(r"\{[a-z]+\}", "*", template))
    return {place for path in files if (place := _place(path, root, layout, template)) is not None}


def _place(path: Path, root: Path, layout: Layout, template: str) -> Place | None:
    """The region-year a file belongs to, None if it is nobody's."""
    pattern = re.escape(template)
    for field, matches in (("year", r"\d{4}"), ("short", r"\d{2}"), ("region", r"[^/.]+"), ("split", r"[^/.]+")):
        first = f"(?P<{field}>{matches})"
        pattern = pattern.replace(re.escape(f"{{{field}}}"), first, 1).replace(
            re.escape(f"{{{field}}}"), f"(?P={field})"
        )
    match = re.fullmatch(pattern, path.relative_to(root).as_posix())
    if match is None or "region" not in match.groupdict():
        return None
    groups = match.groupdict()
    year = int(groups["year"]) if "year" in groups else 2000 + int(groups.get("short") or 0)
    known = {layout.word(split, year) for split in SPLITS}
    return Place(groups["region"], year) if groups.get("split", "") in known or "split" not in groups else None
