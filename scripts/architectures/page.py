"""docs/architectures.md from what was measured."""

from __future__ import annotations

from typing import Any

__all__ = ["page"]

_BAR = 1e-5


def _cell(row: dict[str, Any], name: str, missing: str) -> str:
    if name in row:
        return f"{row[name]:.0e}" if row[name] <= _BAR else f"**{row[name]:.0e}**"
    return "no" if f"{name} refused" in row else missing


def _agree(rows: dict[str, Any], name: str) -> int:
    return sum(row.get(name, 1) <= _BAR for row in rows.values())


def page(known: dict[str, Any]) -> str:
    """The text of the page."""
    rows, setting = known["rows"], known["setting"]
    versions = ", ".join(f"{name} {version}" for name, version in setting["versions"].items())
    most = f"{setting['largest for C']:,}".replace(",", " ")
    lines = [_HEAD.format(count=len(rows), pack=_agree(rows, "pack"), c=_agree(rows, "c"), onnx=_agree(rows, "onnx"),
                          tried=sum("c" in row or "c refused" in row for row in rows.values()), versions=versions,
                          most=most)]  # fmt: skip
    for library in dict.fromkeys(row["library"] for row in rows.values()):
        lines += ["", f"## {library}", "", "| architecture | weights | pack | C | ONNX |", "|---|---:|---|---|---|"]
        for name, row in rows.items():
            if row["library"] == library:
                cells = [_cell(row, "pack", "-"), _cell(row, "c", "large" if "pack" in row else "-"),
                         _cell(row, "onnx", "-")]  # fmt: skip
                weights = f"{row['weights']:,}".replace(",", " ")
                lines.append(f"| {name} | {weights} | {' | '.join(cells)} |")
    lines += ["", "## What was refused", ""]
    for name, row in rows.items():
        for kind in ("pack", "c", "onnx"):
            if f"{kind} refused" in row:
                lines.append(
                    f"- {name}, {kind if kind != 'c' else 'C'}: {row[f'{kind} refused']}".replace("onnx", "ONNX")
                )
    return "\n".join([*lines, _TAIL])


_HEAD = """\
# Which networks pack

Written by `python -m scripts.architectures` from `results/architectures.json`.

{count} architectures with random weights, small configurations where the library has them; each is traced with two
samples and asked about three. A number is the largest difference from torch's answer, by the largest output. Of
{count}, {pack} pack and agree to 1e-5; {onnx} agree as ONNX (onnxruntime); of {tried} that pack with at most {most}
weights, {c} agree as C (gcc, `-std=c99 -Wall -Werror`, the batch entry). Measured with {versions}. "No" is a
refusal, listed below; "large" was not tried."""

_TAIL = """
## What a pack holds of them
- **Operations from a closed list** (`packs/operations.py`): layers, convolutions of one to three dimensions (grouped,
  dilated, transposed), norms, attention, pools, resizing, arithmetic, comparisons, reductions, views, indices,
  scattering, sorting. What torch takes apart (GELU's friends, einsum, instance norm, RMS norm, `MultiheadAttention`)
  arrives as several of them.
- **Recurrent layers are loops**: one operation `rnn`, `gru` or `lstm` per layer and direction, whatever the length;
  several layers, both directions, first states and projections.
- **Sequences of any length**: a pack of your own network with recurrent layers, attention or embeddings takes other
  lengths than those it was trained with wherever the network does (it is tried at two before the pack is written), up
  to a table of positions where there is one; other sizes than length and number of samples are fixed. ONNX has a
  dimension `time`. In C the functions have one more argument, `int time`, and a stated longest length
  (`fewer export --to c --length 200`); beyond it they answer -1.
- **Embeddings and recurrent matrices keep their masks** in the file. At run time a lookup reads the rows that are asked
  for, and products of recurrent layers go over kept weights alone, in C, unless a large matrix keeps more than half.
- **Whole numbers** are inputs like others: `predict` takes int64 tokens, the C function takes them as floats (exact up
  to 2^24), ONNX as int64. C never reads outside a table: a number that is no row means the nearest one.
- **C** (`fewer export --to c`): C99 without `malloc`, kept weights alone, buffers used again. `NAME(input, output)` is
  one sample, `NAME_batch(input, output, samples)` several, one after another.
- **ONNX holds pruned weights as zeros, dense.** The format has sparse initializers, and onnxruntime reads them, but
  it unfolds them when it loads the file and then multiplies all of it, zeros too: they would save bytes, no time. For
  small files and sparse arithmetic use the pack or C.
- **A refusal names the operation** and, where there is one, a way round.
"""
