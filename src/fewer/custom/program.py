"""A network as data: the operations of its prediction as JSON and its tensors beside them, nothing that could execute.

With it a run of a network that was given as an object is read where its class cannot be imported, as in the next
notebook. It answers in eval mode; names of parameters and buffers are those of the network.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from fewer.core.errors import UserError
from fewer.core.files.atomic import write_atomically
from fewer.core.files.run_folder import Folder
from fewer.custom.graph import plain
from fewer.packs.trace.length import sequential
from fewer.packs.trace.whole import kept_whole, put_back_

__all__ = ["exported", "network_of", "write_network"]

_AGAIN = "give it again: fewer.load(path, model=...)"
_GRAPH, _TENSORS = "network.json", "network.safetensors"


def exported(module: nn.Module, inputs: tuple[Tensor, ...]) -> torch.export.ExportedProgram:
    """torch's program of the network in eval mode, for any number of samples, and of any length where it can be."""
    free = torch.export.Dim.AUTO
    timed = sequential(module)
    shapes = tuple({0: free, 1: free} if timed and x.ndim > 1 else {0: free} for x in inputs)
    was, fast = module.training, torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(fast and not timed)  # which export cannot open
    try:
        with warnings.catch_warnings(), torch.no_grad(), kept_whole(module):
            warnings.simplefilter("ignore")  # of recurrent layers, whose lists of weights are no state
            found = torch.export.export(module.eval(), inputs, dynamic_shapes=shapes, strict=False)
            put_back_(found.graph_module)
            return found
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        module.train(was)


def write_network(folder: Folder, module: nn.Module, inputs: tuple[Tensor, ...]) -> str | None:
    """Keep the network there; why not, where torch cannot write it down."""
    from torch._export.serde.serialize import serialize

    try:
        program = exported(module, inputs)
        graph = plain(json.loads(serialize(program).exported_program))
    except Exception as error:  # torch.export refuses in many ways; training went well all the same
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    parameters = [name for name, value in program.state_dict.items() if isinstance(value, nn.Parameter)]
    first: dict[int, str] = {}
    ties = {name: first.setdefault(id(value), name) for name, value in program.state_dict.items()}
    about = {"graph": graph, "parameters": parameters, "ties": {a: b for a, b in ties.items() if a != b}}
    write_atomically(folder.path / _GRAPH, json.dumps(about).encode())
    tensors = {f"state/{name}": value.detach() for name, value in program.state_dict.items() if ties[name] == name}
    tensors |= {f"constant/{name}": value.detach() for name, value in program.constants.items()}
    folder.write_tensors(_TENSORS, tensors)
    return None


def network_of(folder: Folder) -> nn.Module:
    """The network that was kept there, with the weights it began with."""
    from torch._export.serde.serialize import SerializedArtifact, deserialize

    if not (folder.path / _GRAPH).exists():
        raise UserError(f"{folder.path} without the network, which torch could not export", "the network", _AGAIN)
    about, tensors = folder.read_json(_GRAPH), folder.read_tensors(_TENSORS)
    try:
        graph = plain(about["graph"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        given = f"{folder.path / _GRAPH} with {error}"
        raise UserError(given, "names, sizes and operations of torch alone", _AGAIN) from None
    try:
        state: dict[str, Tensor] = {}
        for name, tensor in tensors.items():
            kind, _, own = name.partition("/")
            if kind == "state":
                state[own] = nn.Parameter(tensor) if own in about["parameters"] else tensor
        state |= {name: state[own] for name, own in about["ties"].items()}
        constants = {name.partition("/")[2]: value for name, value in tensors.items() if name.startswith("constant/")}
        artifact = SerializedArtifact(json.dumps(graph).encode(), state, constants, b"")  # type: ignore[arg-type]
        found: Any = deserialize(artifact).module(check_guards=False)
    except Exception as error:
        raise UserError(
            f"{folder.path / _GRAPH}, which this torch cannot read ({type(error).__name__})", "one that wrote it",
            _AGAIN,
        ) from None  # fmt: skip
    for word in ("train", "eval"):
        vars(found).pop(word, None)  # which torch replaces by refusals
    for name, own in about["ties"].items():
        parent, _, last = name.rpartition(".")
        setattr(found.get_submodule(parent), last, found.get_parameter(own))
    return found  # type: ignore[no-any-return]
