"""Settings of a finished run that are no longer as they were."""

from __future__ import annotations

import argparse


def add_changes(parser: argparse.ArgumentParser) -> None:
    """`--set KEY=VALUE`, for `fewer.run.load.load`."""
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting that has changed, such as data=DIR"
    )
