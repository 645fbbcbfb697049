"""What the control paper says of layers and bytes, judged by Figure 3, Figure 4 and Table 1 of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fewer.studies.claims import Claim, Records, Verdict
from fewer.studies.permutation import permutation_p
from fewer.studies.words import between, listed

__all__ = ["SIZES"]

DATA = "our own expert's logs"
FIRST_WEIGHTS = "first weights; bytes depend on how many weights are kept, not on the logs"
COO = " 95 % as COO"

Kept = Mapping[str, Mapping[str, Sequence[int]]]  # layer: criterion: weights kept, of each seed


def _kept(records: Records) -> tuple[Kept, Mapping[str, int]]:
    details = records["control/fig3"]["details"]
    return details["kept"], details["weights"]


def _shares(records: Records, criterion: str) -> dict[str, float]:
    """Mean share of the weights that each layer keeps."""
    kept, weights = _kept(records)
    return {layer: float(np.mean(found[criterion])) / weights[layer] for layer, found in kept.items()}


def _last(shares: Mapping[str, float]) -> dict[str, list[str]]:
    """Last layers, the heads of an encoder each, and the layers before them."""
    found: dict[str, list[str]] = {}
    for layer in shares:
        own = [other for other in shares if other.partition(".")[0] == layer.partition(".")[0]]
        heads = [name for name in own if ".body." not in name]
        if layer in (heads or own[-1:]):
            found[layer] = [other for other in own if other not in (heads or own[-1:])]
    return found


def _short(layers: Sequence[str]) -> str:
    return listed(layer.removesuffix(".weight") for layer in layers)


def _uneven(records: Records) -> Verdict:
    """Largest over smallest share of a layer, network by network."""
    found = {}
    for criterion in ("snip", "grasp"):
        shares = _shares(records, criterion)
        for network in dict.fromkeys(layer.partition(".")[0] for layer in shares):
            own = [share for layer, share in shares.items() if layer.partition(".")[0] == network]
            found[f"{network} under {criterion}"] = max(own) / min(own)
    kind = "holds on ours" if min(found.values()) > 2 else "partly" if max(found.values()) > 2 else "fails"
    return Verdict(kind, f"the best kept layer keeps {between(found.values())} times the share of the worst", data=DATA)


def _last_layers(records: Records) -> Verdict:
    """Larger share of the last layer than of every layer before."""
    good, all_ = [], []
    for criterion in ("snip", "grasp"):
        shares = _shares(records, criterion)
        for layer, before in _last(shares).items():
            all_.append(f"{layer} under {criterion}")
            if shares[layer] > max(shares[other] for other in before):
                good.append(all_[-1])
    kind = "holds on ours" if len(good) == len(all_) else "partly" if good else "fails"
    rest = [name.replace(".weight", "") for name in all_ if name not in good]
    return Verdict(kind, f"{len(good)} of {len(all_)} last layers; not {listed(rest)}", data=DATA)


def _grasp_more(records: Records) -> Verdict:
    """GraSP's share of last layers above SNIP's, tested over seeds."""
    kept, _ = _kept(records)
    snip, grasp = _shares(records, "snip"), _shares(records, "grasp")
    ends = list(_last(snip))
    more = [layer for layer in ends if grasp[layer] > snip[layer]]
    p = min(1.0, min(permutation_p(kept[layer]["snip"], kept[layer]["grasp"]) for layer in ends) * len(ends))
    kind = "holds on ours" if len(more) == len(ends) else "partly" if more else "fails"
    shares = [f"{_short([layer])} {100 * grasp[layer]:.0f} against {100 * snip[layer]:.0f} %" for layer in ends]
    why = (
        ""
        if kind == "holds on ours"
        else "both criteria agree with independent code to the bit; critics behind raw observations say the same"
    )
    return Verdict(kind, f"GraSP keeps more in {len(more)} of {len(ends)}: {listed(shares)}", p, DATA, why)


def _alike(records: Records) -> Verdict:
    """Rank correlation of the shares of all layers."""
    ranks = [np.argsort(np.argsort(list(_shares(records, name).values()))) for name in ("snip", "grasp")]
    found = float(np.atleast_2d(np.corrcoef(np.stack(ranks)))[0, 1])
    kind = "holds on ours" if found > 0.8 else "partly" if found > 0.4 else "fails"
    return Verdict(kind, f"rank correlation of the layers' shares {found:.2f} over {len(ranks[0])} layers", data=DATA)


def _rows(records: Records) -> list[tuple[str, str, float | None, float]]:
    """Network, format, the paper's megabytes, ours."""
    return [(row[0], row[1], row[2] or None, float(row[3])) for row in records["control/table1"]["rows"]]


def _near(names: Sequence[str], within: float, records: Records) -> Verdict:
    """The paper's megabytes in the same formats."""
    away = [100 * (ours / paper - 1) for _, what, paper, ours in _rows(records) if paper and what in names]
    kind = "holds" if max(map(abs, away)) <= within else "partly"
    return Verdict(kind, f"{len(away)} files, apart by {between(away, '+.1f')} %", data=FIRST_WEIGHTS)


def _dense_bytes(records: Records) -> Verdict:
    return _near(("dense", "dense as COO"), 1.0, records)


def _pruned_bytes(records: Records) -> Verdict:
    found = [_near([f"{name}{COO}"], 1.0, records) for name in ("SNIP", "GraSP")]
    kind = "holds" if all(one.kind == "holds" for one in found) else "partly"
    why = "ours keep exactly k weights; why the paper's would differ, it does not say" if kind == "partly" else ""
    return Verdict(kind, f"SNIP: {found[0].numbers}; GraSP: {found[1].numbers}", data=FIRST_WEIGHTS, why=why)


def _times(records: Records, what: str) -> list[float]:
    rows = _rows(records)
    dense = {network: ours for network, name, _, ours in rows if name == "dense"}
    return [dense[network] / ours for network, name, _, ours in rows if name.endswith(what)]


def _four_times(records: Records) -> Verdict:
    found = _times(records, COO)
    kind = "holds" if min(found) >= 4 else "partly" if min(found) >= 3.5 else "fails"
    return Verdict(kind, f"{between(found, '.2f')} times smaller, by the paper's own table too", data=FIRST_WEIGHTS,
                   why="" if kind == "holds" else "positions take 16 of a weight's 20 bytes")  # fmt: skip


def _coordinates_cost(records: Records) -> Verdict:
    found = [1 / times for times in _times(records, "dense as COO")]
    return Verdict("holds" if min(found) > 1 else "fails", f"{between(found)} times the dense file", data=FIRST_WEIGHTS)


def _further(records: Records) -> Verdict:
    found = _times(records, "our pack, float32")
    kind = "holds" if min(found) > max(_times(records, COO)) else "fails"
    return Verdict(kind, f"lossless packs are {between(found)} times smaller than dense files", data=FIRST_WEIGHTS)


def _smaller_grasp(records: Records) -> Verdict:
    ours = {(network, what): size for network, what, _, size in _rows(records)}
    networks = dict.fromkeys(network for network, _ in ours)
    less = [one for one in networks if ours[one, f"GraSP{COO}"] < 0.995 * ours[one, f"SNIP{COO}"]]
    kind = "holds" if len(less) == len(networks) else "partly" if less else "fails"
    sizes = [f"{one} {ours[one, f'GraSP{COO}']:.4f} against {ours[one, f'SNIP{COO}']:.4f}" for one in networks]
    return Verdict(kind, f"{listed(sizes)} MB", data=FIRST_WEIGHTS,
                   why="" if less else "both keep exactly k weights, so files are of one size")  # fmt: skip


def _falls(records: Records) -> Verdict:
    rows: list[list[Any]] = [[float(cell) for cell in row] for row in records["control/fig4"]["rows"]]
    falls = all(before[2] > after[2] for before, after in pairwise(rows))
    below = [f"{removed:g}" for removed, dense, coordinates, _ in rows if coordinates < dense]
    return Verdict(
        "holds" if falls and below else "fails", f"below the dense file at {listed(below)} %", data=FIRST_WEIGHTS
    )


_3, _4, _T = ("control/fig3",), ("control/fig4",), ("control/table1",)
_LAYERS, _BYTES = "Section 4.2, Figure 3", "Section 4.3, Figure 4"

SIZES = (
    Claim("uneven", _LAYERS, "Neither criterion prunes all layers alike.", _3, _uneven),
    Claim("last-layer", _LAYERS, "Both criteria keep more of the last layer.", _3, _last_layers),
    Claim("grasp-last-layer", _LAYERS, "GraSP keeps more of the last layer than SNIP.", _3, _grasp_more),
    Claim("same-pattern", _LAYERS, "Both criteria prune in a similar pattern over the layers.", _3, _alike),
    Claim("dense-bytes", "Table 1", "Dense networks take 0.53, 1.04 and 4.76 MB, as coordinates 2.63, 5.20 and 23.8.",
          _T, _dense_bytes),
    Claim("pruned-bytes", "Table 1", "At 95 % files of coordinates take 0.14, 0.28 and 1.2 MB.", _T, _pruned_bytes),
    Claim("four-times", "Abstract, Section 4.3", "At 95 % the networks' memory is 4 times smaller without compression.",
          _T, _four_times),
    Claim("coordinates-cost", _BYTES, "Dense weights as coordinates take more memory than plain ones.",
          _T, _coordinates_cost),
    Claim("grasp-smaller", "Table 1", "GraSP's files are smaller than SNIP's.", _T, _smaller_grasp),
    Claim("falls", "Figure 4", "Memory falls with sparsity and goes below the dense file's.", _4, _falls),
    Claim("further", "Section 4.3", "Better ways to store sparse matrices reduce the memory further.", _T, _further),
)  # fmt: skip
