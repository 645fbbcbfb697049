"""The service's life: packs are reloaded and the server stopped without a client noticing more than `close`."""

from __future__ import annotations

import asyncio
import errno
import gc
import http.client
import json
import select
import shutil
import signal
import socket
import sys
import threading
import weakref
from pathlib import Path

import pytest

from fewer import zoo
from fewer.bench.load import serving
from fewer.serve.app import Application
from fewer.serve.models import open_models
from fewer.serve.processes import slot
from fewer.serve.processes.door import deafen
from fewer.serve.processes.server import Server, server_of
from fewer.serve.start import bind
from tests.serve.sockets import GIVE_UP, connected, heard
from tests.waiting import until

SCRIPTS = str(Path(__file__).parents[2] / "scripts")
ALIVE = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"


class Running:
    """A server in a thread, and how it is told to leave."""

    def __init__(self, application: Application) -> None:
        door = bind("127.0.0.1", 0)
        self.port: int = door.getsockname()[1]
        self.application, self.server = application, server_of(application)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [door]})
        self._thread.start()

    def told(self, silence: float) -> None:
        self.application.ready, self.application.door.silence = False, silence
        self.server.should_exit = True

    def ended(self) -> bool:
        self._thread.join(GIVE_UP)
        return not self._thread.is_alive()


def asked(client: socket.socket) -> bytes:
    client.sendall(ALIVE)
    answer = b""
    while b'{"status":"ok"}' not in answer:
        part = client.recv(1 << 16)
        assert part, answer
        answer += part
    return answer


def refused(port: int) -> bool:
    try:
        connected(port).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_server_that_leaves_answers_those_who_keep_their_connection_once_more_and_says_so() -> None:
    running = Running(Application([]))
    with connected(running.port) as client, connected(running.port) as silent:
        assert b"connection: close" not in asked(client)
        running.told(silence=GIVE_UP)
        until(lambda: refused(running.port))  # nobody else is let in
        assert b"connection: close" in asked(client) and heard(client) == b""
        running.application.door.silence = 0.01  # told once more, in a hurry
        assert heard(silent) == b""
    assert running.ended()


def test_whoever_has_connected_before_the_door_closes_is_let_in() -> None:
    application, door = Application([]), bind("127.0.0.1", 0)
    server = server_of(application)
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)

    async def leave(client: socket.socket) -> bytes:
        application.door.silence = GIVE_UP
        await server._let_in([door])
        door.close()
        return await asyncio.to_thread(heard, client)

    with connected(door.getsockname()[1]) as client:  # the system took it; no process has
        client.sendall(ALIVE)
        assert b'{"status":"ok"}' in asyncio.run(leave(client))


@pytest.mark.skipif(sys.platform != "linux", reason="there alone the system can be told to hear nobody")
def test_nobody_is_connected_between_the_last_one_let_in_and_the_closed_door() -> None:
    door = bind("127.0.0.1", 0)
    with connected(door.getsockname()[1]) as early, socket.socket() as late:
        deafen(door)
        late.setblocking(False)
        assert late.connect_ex(door.getsockname()) == errno.EINPROGRESS
        accepted, _ = door.accept()  # the early one, who stays connected
        assert select.select([door], [late], [], 0.2) == ([], [], [])  # the late one waits, and is nobody's guest
        door.close()
        assert select.select([], [late], [], GIVE_UP)[1]  # asked again by its system
        assert late.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
        early.sendall(b"asked")
        assert accepted.recv(9) == b"asked"
        accepted.close()


@pytest.mark.skipif(sys.platform != "linux", reason="there alone the system can be told to hear nobody")
@pytest.mark.parametrize("last", [True, False])
def test_a_worker_that_leaves_by_itself_leaves_the_door_open_for_the_others(last: bool) -> None:
    others, application = bind("127.0.0.1", 0), Application([])
    server = server_of(application, last=lambda: last)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [others.dup()]})
    thread.start()
    with connected(others.getsockname()[1]) as client:
        asked(client)
        application.door.silence, server.should_exit = 0.05, True
        assert heard(client) == b""
    thread.join(GIVE_UP)
    with socket.socket() as late:
        late.settimeout(0.2 if last else GIVE_UP)
        if last:  # who else holds the door lets nobody in, and the client is to be refused as soon as it is closed
            with pytest.raises(TimeoutError):
                late.connect(others.getsockname())
        else:
            late.connect(others.getsockname())
    others.close()


def test_a_server_that_leaves_does_not_wait_for_the_silent() -> None:
    running = Running(Application([]))
    with connected(running.port) as client:
        asked(client)
        running.told(silence=0.05)
        assert heard(client) == b"" and running.ended()


def test_a_server_that_is_to_drain_is_not_ready_at_once_and_lets_others_in_for_a_while() -> None:
    application = Application([])
    server = server_of(application, drain_seconds=GIVE_UP)
    assert isinstance(server, Server) and application.ready
    server.handle_exit(signal.SIGTERM, None)
    assert not application.ready and not server.should_exit
    server.handle_exit(signal.SIGTERM, None)
    assert server._leave_at < 0  # told twice: now


def test_an_application_is_gone_when_nobody_holds_it() -> None:
    application = Application(open_models(["control-hopper-95"]))
    gone = weakref.ref(application)
    del application
    gc.collect()
    assert gone() is None  # with its packs, which a reload has opened anew


def answered(port: int, path: str = "/v1/models") -> list[dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=GIVE_UP)
    connection.request("GET", path)
    found: list[dict[str, str]] = json.loads(connection.getresponse().read())
    connection.close()
    return found


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no such signal here")
def test_packs_are_reloaded_when_told_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    pack, log = tmp_path / "my.pack", tmp_path / "access.log"
    versions = [model.version for model in open_models(["control-hopper-95", "control-hopper-99"])]
    shutil.copy(zoo.find("control-hopper-95", "a pack"), pack)
    with serving([str(pack)], "--access-log", str(log)) as server:
        assert answered(server.port)[0]["version"] == versions[0]
        with connected(server.port) as kept:
            asked(kept)
            shutil.copy(zoo.find("control-hopper-99", "a pack"), pack)
            log.rename(tmp_path / "access.log.1")
            server.process.send_signal(signal.SIGHUP)
            until(lambda: answered(server.port)[0]["version"] == versions[1])
            until(lambda: b"connection: close" in asked(kept))  # by the one who had its connection, once it is told
        pack.write_bytes(b"no pack")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: server.metric('fewer_reloads_total{result="failed"}') == 1)
        # one who has just been told to retire may have answered once more
        until(lambda: {answered(server.port)[0]["version"] for _ in range(5)} == {versions[1]})
        assert server.metric('fewer_reloads_total{result="good"}') == 1
    lines = [json.loads(line) for line in log.read_text().splitlines()]  # made anew after it was moved away
    assert {line["path"] for line in lines} >= {"/v1/models", "/metrics"}


def test_no_request_is_lost_while_workers_are_killed_and_packs_reloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    for name in [name for name in sys.modules if name.startswith("enduring")]:
        monkeypatch.delitem(sys.modules, name)
    from enduring.run import Plan, endured

    plan = Plan(seconds=6.0, kill=2.2, reload=1.7, terminate=True, models=("cellfree-80", "control-hopper-95"))
    found = endured(plan)
    assert found.lost == [] and found.kills and found.reloads
    assert found.good, found.summary()
    assert sum(seen.answered for seen in found.seen.values()) > 50


class Fake:
    """A process that ends when told."""

    exitcode = -9
    alive = True

    def is_alive(self) -> bool:
        return self.alive


def test_a_worker_that_ends_again_and_again_waits_ever_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(slot.time, "monotonic", lambda: now[0])
    place = slot.Slot(0, lambda _: Fake())
    waits = []
    for _ in range(9):
        place.mark()
        assert place.wait is None and not place.ended()
        place.process.alive = False
        assert place.ended() and not place.ended() and place.failed == 0
        waits.append(place.wait)
        now[0] += place.wait or 0.0
        place.start()
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    place.process.alive = False
    assert place.ended() and place.wait == 30.0
    place.hurry()  # nobody else is there
    assert place.wait == 0.5
    place.start()
    place.mark()
    now[0] += 11.0  # it worked for a while: the next may come at once
    place.process.alive = False
    assert place.ended() and place.wait == 0.0
    place.start()
    place.process.alive = False
    assert place.ended() and place.failed == 1
