"""Hostile requests: each is one body, sent to one task."""

from __future__ import annotations

import functools
import http.client
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from fewer.bench.load import serving
from hurting.measure import SECONDS, Attack

__all__ = ["ATTACKS", "MODELS", "OPTIONS", "WARM"]

MODELS = ["cellfree-80", "control-hopper", "digits-3197", "nowcast-80"]
OPTIONS = ["--seconds", "5"]
NPZ, JSON = "application/x-npz", "application/json"


def post(port: int, task: str, body: bytes, kind: str) -> str:
    """The status of one prediction."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("POST", f"/v1/{task}/predict", body, {"content-type": kind})
        answer = connection.getresponse()
        answer.read()
        return str(answer.status)
    except OSError as error:
        return type(error).__name__
    finally:
        connection.close()


def npz(**arrays: Any) -> bytes:
    """An npz file of these arrays."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def images_of_no_size() -> bytes:
    """A few bytes that claim 36 million pixels, none of them sent."""
    return npz(satellite=np.zeros((1, 1, 0, 6000, 6000), "f4"))


def lists_that_promise_a_square() -> bytes:
    """64 kB whose first items promise 16,000 x 16,000 numbers."""
    zeros = ",0" * 15_999
    return f'{{"satellite": [[[[0{zeros}]{zeros}]]]}}'.encode()


def images_that_unfold() -> bytes:
    """30 kB that unfold to 31 MB of bytes, 125 MB as the model wants them."""
    return npz(pixels=np.zeros((40_000, 28, 28), "u1"))


def a_zip_of_many_parts() -> bytes:
    """A directory of 170,000 files, as large as a request may be."""
    return b"PK\x01\x02" + b"PK\x01\x02".join([bytes(42)] * 170_000) + b"PK\x05\x06" + bytes(18)


def _phones(count: int) -> bytes:
    return json.dumps({"master": [3] * count, "rsrp_db": [[-80, -9, 0]] * count}, separators=(",", ":")).encode()


def phones_without_end() -> bytes:
    """350,000 phones in 5.6 MB."""
    return _phones(350_000)


def as_many_phones_as_are_allowed() -> bytes:
    """8192 phones, which are answered."""
    return _phones(8192)


def lists_of_nothing() -> bytes:
    """Eight megabytes of empty lists: 64 bytes of memory for every three."""
    return b'{"pixels": [' + b"[]," * 2_700_000 + b"[]]}"


def as_many_numbers_as_bytes_allow() -> bytes:
    """5000 images in 8 MB, two bytes a number: each takes four in the model's type. Answered, or told to be late."""
    image = b"[" + b",".join([b"[" + b",".join([b"0"] * 28) + b"]"] * 28) + b"]"
    return b'{"pixels": [' + b",".join([image] * 5000) + b"]}"


def blanks_without_end() -> bytes:
    """Eight megabytes between a name and its value."""
    return b'{"pixels":' + b" " * 8_000_000 + b"[]}"


def an_hour_of_images_in_json() -> bytes:
    """An honest request that is long to read and long to write: 2 MB in, 4.5 MB out."""
    images = np.random.default_rng(0).normal(size=(4, 11, 84, 84)).round(3)
    return json.dumps({"satellite": images.tolist()}, separators=(",", ":")).encode()


def a_page_asked_with_megabytes() -> bytes:
    """Eight megabytes to what the page of digits asks."""
    return lists_of_nothing()


def _sending(body: Callable[[], bytes], task: str, kind: str = JSON) -> Attack:
    made = functools.cache(body)

    @functools.wraps(body)
    def attack(server: serving) -> str:
        return post(server.port, task, made(), kind)

    return attack


ATTACKS = [
    _sending(images_of_no_size, "nowcast", NPZ),
    _sending(lists_that_promise_a_square, "nowcast"),
    _sending(images_that_unfold, "vision", NPZ),
    _sending(a_zip_of_many_parts, "vision", NPZ),
    _sending(phones_without_end, "cellfree"),
    _sending(as_many_phones_as_are_allowed, "cellfree"),
    _sending(lists_of_nothing, "vision"),
    _sending(as_many_numbers_as_bytes_allow, "vision"),
    _sending(blanks_without_end, "vision"),
    _sending(an_hour_of_images_in_json, "nowcast"),
    _sending(a_page_asked_with_megabytes, "vision/attack?"),
]
WARM = [
    attack for attack in ATTACKS if attack.__name__ in ("as_many_phones_as_are_allowed", "an_hour_of_images_in_json")
]
