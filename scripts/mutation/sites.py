"""Where a module's source can be made wrong in a small way, and how it reads then."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "mutants"]

COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One wrong change: the text from `start` to `end` of the file, in bytes, reads `after` instead."""

    path: str
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str
    name: str  # by the text of its line and not by its number: the same when something changes elsewhere

    def applied(self, source: bytes) -> bytes:
        """The module with this mistake in it."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants(path: str, source: bytes) -> list[Mutant]:
    """All of one module, in the order of its text."""
    lines, starts = source.decode().split("\n"), [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    found, names = list[Mutant](), Counter[str]()
    for node, kind, after in _changes(ast.parse(source)):
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        text = " ".join(source[begin:end].decode().split())
        name = f"{path}: {lines[node.lineno - 1].strip()} | {kind}: {text[:80]} -> {after[:80]}"  # type: ignore[attr-defined]
        names[name] += 1
        name += f" | {names[name]}" if names[name] > 1 else ""
        found.append(Mutant(path, node.lineno, kind, begin, end, text, after, name))  # type: ignore[attr-defined]
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.kind))


def _changes(tree: ast.AST) -> Iterator[tuple[ast.AST, str, str]]:
    """Nodes of what runs, with what stands in the place of each."""
    for node in _running(tree):
        if isinstance(node, ast.expr):
            yield from ((node, kind, f"({ast.unparse(other)})") for kind, other in _expression(node))
        elif isinstance(node, ast.stmt):
            yield from ((node, kind, text) for kind, text in _statement(node))


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """All below a node but types, names that are offered, texts with places in them, and what only typing reads."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _idle(child):
                yield child
                yield from _running(child)


def _idle(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.expr_context):
        return True
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def _expression(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    other = copy.deepcopy(node)
    match node, other:
        case ast.Compare(ops=[op, *_]), ast.Compare() if type(op) in COMPARE:
            other.ops[0] = COMPARE[type(op)]()
            yield "comparison", other
        case ast.BinOp(op=op), ast.BinOp() if type(op) in ARITHMETIC:
            other.op = ARITHMETIC[type(op)]()
            yield "arithmetic", other
        case ast.UnaryOp(op=ast.USub() | ast.Not()), ast.UnaryOp():
            yield "sign" if isinstance(node.op, ast.USub) else "boolean", other.operand  # type: ignore[attr-defined]
        case ast.BoolOp(), ast.BoolOp():
            other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()  # type: ignore[attr-defined]
            yield "boolean", other
        case ast.Constant(value=bool(value)), _:
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)), _:
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(value=float(value)), _:
            yield "constant", ast.Constant(value * 2 if value else 1.0)
        case ast.IfExp(), ast.IfExp():
            other.test = ast.UnaryOp(ast.Not(), other.test)
            yield "condition", other


def _statement(node: ast.stmt) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", "return None"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.AugAssign() | ast.Delete():
            yield "deleted", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "deleted", "pass"
        case ast.Break() | ast.Continue():
            yield "deleted", "pass"
