"""A kept network is read as names, sizes and torch's operations; what could be anything else is refused unread."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fewer.core.errors import UserError
from fewer.core.files.run_folder import Folder
from fewer.custom.graph import plain
from fewer.custom.program import network_of, write_network


class Folding(nn.Module):
    """With sizes to work out, an operation that takes words, and a name that no variable could have."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({"first-one": nn.Linear(4, 6)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.einsum("ij,kj->ik", self.parts["first-one"](x), torch.ones(3, 6))
        return nn.functional.gelu(found, approximate="tanh").reshape(x.shape[0] * 3, -1)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    assert write_network(Folder(folder), Folding(), (torch.rand(4, 4),)) is None
    return folder


def code(mark: Path) -> str:
    return f"__import__('pathlib').Path('{mark}').touch()"


def graph_of(about: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = about["graph"]["graph_module"]["graph"]
    return found


def in_a_size(about: dict[str, Any], mark: Path) -> None:
    next(iter(graph_of(about)["sym_int_values"].values()))["as_expr"]["expr_str"] = code(mark)


def in_a_symbol(about: dict[str, Any], mark: Path) -> None:
    size = next(iter(graph_of(about)["sym_int_values"].values()))["as_expr"]
    size["expr_str"] = f'Max(Symbol("s0"), Integer("{code(mark)}"))'


def in_a_name(about: dict[str, Any], mark: Path) -> None:
    told = json.dumps(about["graph"]).replace('"x"', json.dumps(f"x={code(mark)}"))
    about["graph"] = json.loads(told)


def in_a_shape_of_inputs(about: dict[str, Any], mark: Path) -> None:
    signature = about["graph"]["graph_module"]["module_call_graph"][0]["signature"]
    enum = {"__enum__": True, "fqn": f"{code(mark)}:x", "name": "x"}
    signature["in_spec"] = json.dumps(
        [1, {"type": "builtins.dict", "context": json.dumps([enum]), "children_spec": []}]
    )


def as_an_operation(target: str, *words: str) -> Callable[[dict[str, Any], Path], None]:
    def change(about: dict[str, Any], mark: Path) -> None:
        node = next(each for each in graph_of(about)["nodes"] if "gelu" in each["target"])
        node["target"] = target
        node["inputs"] = [{"name": "", "arg": {"as_string": word.format(mark)}, "kind": 1} for word in words]

    return change


HOSTILE = {
    "a size": in_a_size,
    "a symbol": in_a_symbol,
    "a name": in_a_name,
    "inputs": in_a_shape_of_inputs,
    "a command": as_an_operation("torch.os.system", "touch {}"),
    "a library": as_an_operation("torch.ops.load_library.__call__", "{}"),
    "a file": as_an_operation("torch.ops.aten.from_file.default", "{}"),
    "another file": as_an_operation("torch.ops.aten.save.default", "x", "{}"),
    "a call": as_an_operation("_operator.call", "{}"),
}


@pytest.mark.parametrize("place", HOSTILE)
def test_code_in_a_kept_network_is_refused_and_not_run(kept: Path, tmp_path: Path, place: str) -> None:
    about, mark = json.loads((kept / "network.json").read_text()), tmp_path / "mark"
    HOSTILE[place](about, mark)
    for file in kept.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "network.json").write_text(json.dumps(about))
    with pytest.raises(UserError, match="operations of torch alone"):
        network_of(Folder(tmp_path))
    assert not mark.exists()


def test_what_was_kept_is_plain_answers_alike_and_says_nothing_of_where_it_was_made(kept: Path) -> None:
    about = json.loads((kept / "network.json").read_text())
    assert plain(copy.deepcopy(about["graph"])) == about["graph"]
    assert str(Path(__file__).parent) not in json.dumps(about) and not about["graph"]["guards_code"]
    read, x = network_of(Folder(kept)), torch.rand(5, 4)
    made = Folding()
    made.load_state_dict(read.state_dict())
    assert torch.allclose(read(x), made(x))


def test_a_network_whose_operations_are_not_torchs_is_not_kept_and_why_is_said(tmp_path: Path) -> None:
    @torch.library.custom_op("fewer_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    twice.register_fake(torch.empty_like)

    class Own(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return twice(x)

    why = write_network(Folder(tmp_path), Own(), (torch.rand(2, 3),))
    assert why is not None and "fewer_tests.twice" in why and not list(tmp_path.iterdir())
