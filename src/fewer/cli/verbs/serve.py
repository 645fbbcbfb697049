"""`fewer serve`: packs and runs behind HTTP, with a page to play with."""

from __future__ import annotations

import argparse
import os

from fewer import zoo
from fewer.cli.opened import add_trust, allowance
from fewer.cli.words import offer
from fewer.core.errors import MissingExtra, UserError


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    model = parser.add_argument(
        "model", nargs="*", help="packs, run folders or names of the zoo; all of the zoo if left out"
    )
    offer(model, zoo.names, or_file=True)
    add_trust(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at; any but loopback needs a token")
    parser.add_argument("--port", type=int, default=8080, help="0: a free one")
    parser.add_argument("--token", help="what clients must send as a bearer token; better set FEWER_TOKEN")
    parser.add_argument(
        "--host-name", action="append", default=[], metavar="NAME", help="a further name of this machine for browsers"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes that share the work")
    parser.add_argument("--seconds", type=float, default=10.0, help="longest wait for a request or its answer")
    parser.add_argument("--megabytes", type=float, default=8.0, help="largest request")
    parser.add_argument("--samples", type=int, default=8192, help="samples in one request; beyond: 413")
    parser.add_argument("--queue", type=int, default=4096, help="samples that may wait for a model; beyond: 503")
    parser.add_argument("--connections", type=int, default=512, help="open connections of a worker")
    parser.add_argument("--header-seconds", type=float, default=5.0, help="longest wait for a request's headers")
    parser.add_argument("--idle-seconds", type=float, default=15.0, help="longest wait for a next request")
    parser.add_argument(
        "--drain-seconds",
        type=float,
        default=0.0,
        help="told to stop: how long to go on while /readyz says no, so that a balancer sees it",
    )
    parser.add_argument("--access-log", metavar="FILE", help="a line of JSON for every request; - for standard error")


def run(arguments: argparse.Namespace) -> None:
    """Say where it listens, then answer until stopped."""
    from fewer.cli.show import show

    token = arguments.token or os.environ.get("FEWER_TOKEN") or None
    if arguments.workers < 1:
        raise UserError(f"--workers {arguments.workers}", "at least 1")
    try:
        from fewer.serve.app import Application
        from fewer.serve.start import address, bind, checked_host, names_of, serve
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == "fewer":
            raise
        raise MissingExtra(f"no {error.name}", "what serving needs", "pip install 'fewer[serve]'") from None
    from fewer.serve.limits import Limits
    from fewer.serve.models import open_models

    limits = Limits(
        body_bytes=int(arguments.megabytes * (1 << 20)),
        seconds=arguments.seconds,
        request_samples=arguments.samples,
        queue_samples=arguments.queue,
        connections=arguments.connections,
        header_seconds=arguments.header_seconds,
        idle_seconds=arguments.idle_seconds,
    )
    checked_host(arguments.host, token)
    if not arguments.drain_seconds >= 0:
        raise UserError(f"--drain-seconds {arguments.drain_seconds}", "0 or more")
    names = names_of(arguments.host, token, arguments.host_name)

    def opened() -> Application:
        return Application(
            open_models(arguments.model, allowance=allowance(arguments)),
            limits=limits,
            token=token,
            workers=arguments.workers,
            names=names,
            access_log=arguments.access_log,
        )

    first = [opened()]  # handed over below: nobody is to hold it when another has taken its place
    models = first[0].metrics.models
    listening = bind(arguments.host, arguments.port)
    where = address(listening)
    if arguments.json:
        show({"url": where, "models": models}, True)
    else:
        show(f"{where}  {', '.join(models)}  (Ctrl-C stops)", False)
    import sys

    sys.stdout.flush()
    serve(first.pop(), listening, arguments.workers, opened=opened, drain_seconds=arguments.drain_seconds)
