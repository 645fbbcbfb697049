"""`fewer forecast`: from a forecaster's own files to a CF-NetCDF file, a map and an animation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewer.core.errors import UserError

if TYPE_CHECKING:
    from fewer.systems.nowcast.result import Result

_LONGEST_HOURS = 8.0


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.add_argument("file", nargs="+", help="radar or satellite files of one domain, or folders of them")
    parser.add_argument("--pack", metavar="PACK", help="a trained model, as a pack or a run; without: extrapolation")
    parser.add_argument("--hours", type=float, default=2.0, help="how far ahead")
    parser.add_argument("--step", type=float, default=0.0, help="minutes between forecasts; 0: as the images come")
    parser.add_argument("--variable", action="append", default=[], help="what to read from netCDF; may be repeated")
    parser.add_argument("--pixel-km", type=float, default=0.0, help="forecast on pixels this large; 0: as in the files")
    parser.add_argument("-o", "--out", metavar="FILE.nc", help="the forecast as CF-NetCDF")
    parser.add_argument("--picture", metavar="FILE.png", help="maps of the last image and of the hours ahead")
    parser.add_argument("--animate", metavar="FILE.gif", help="the same, moving")
    parser.add_argument("--show", default="probability", help="what is drawn: probability or rate")
    parser.add_argument("--split", default="test", help="of a folder in the competition's layout: test or heldout")


def run(arguments: argparse.Namespace) -> None:
    """Read, forecast, write; say what was found and what was done about it."""
    import warnings

    from fewer.cli.show import show
    from fewer.core.errors import Notice
    from fewer.systems.nowcast.forecasting import forecast_files

    _check(arguments)
    if (folder := _competition(arguments)) is not None:
        show(_competition_files(arguments, folder), arguments.json)
        return
    result = forecast_files(
        arguments.file, model=arguments.pack or "", hours=arguments.hours, step_minutes=arguments.step,
        variables=arguments.variable, pixel_km=arguments.pixel_km,
    )  # fmt: skip
    for remark in result.remarks:
        warnings.warn(remark, Notice, stacklevel=1)
    show(_written(arguments, result), arguments.json)


def _check(arguments: argparse.Namespace) -> None:
    if not (arguments.out or arguments.picture or arguments.animate):
        raise UserError("nowhere to write to", "-o FILE.nc, --picture FILE.png or --animate FILE.gif")
    if not 0 < arguments.hours <= _LONGEST_HOURS:
        raise UserError(f"--hours {arguments.hours:g}", f"above 0, at most {_LONGEST_HOURS:g}")
    if arguments.step < 0 or arguments.step > 60 * arguments.hours:
        raise UserError(f"--step {arguments.step:g}", "minutes, at most the hours asked for")
    if arguments.show not in ("probability", "rate"):
        raise UserError(f"--show {arguments.show}", "probability or rate")


def _competition(arguments: argparse.Namespace) -> Path | None:
    """The folder, if it is one of the competition's."""
    from fewer.systems.nowcast.task.files.layout import is_competition

    folder = Path(arguments.file[0])
    return folder if len(arguments.file) == 1 and folder.is_dir() and is_competition(folder) else None


def _competition_files(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from fewer.systems.nowcast.commands.region_years import write_region_years

    if not arguments.pack or not arguments.out:
        raise UserError("a folder in the competition's layout", "--pack RUN and -o DIR, one file for each region-year")
    return write_region_years(arguments.pack, folder, Path(arguments.out), split=arguments.split)


def _written(arguments: argparse.Namespace, result: Result) -> dict[str, Any]:
    from fewer.core.files.atomic import write_atomically
    from fewer.systems.nowcast.forecasting import as_chart, as_netcdf
    from fewer.systems.nowcast.maps import animation, picture
    from fewer.systems.nowcast.task.files.netcdf import write_netcdf

    said = dict(result.described())
    if arguments.out:
        write_netcdf(arguments.out, as_netcdf(result), title=f"Rain forecast by {result.method}")
    chart = as_chart(result, arguments.show) if arguments.picture or arguments.animate else None
    for name, draw in (("picture", picture), ("animate", animation)):
        if chart is not None and getattr(arguments, name):
            Path(getattr(arguments, name)).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(getattr(arguments, name), draw(chart))
    return said | {name: getattr(arguments, name) for name in ("out", "picture", "animate") if getattr(arguments, name)}
