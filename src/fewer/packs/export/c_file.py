"""The text of an exported C file around what was written for one sample: constants, scratch, and both entries."""

from __future__ import annotations

import re
from typing import Protocol

from fewer.packs.export.c_batch import ADD_TOGETHER, TOGETHER, batch_body
from fewer.packs.export.c_convolution import ADD, APART
from fewer.packs.export.c_sizes import NAME
from fewer.packs.runtime.chain import Stage
from fewer.packs.runtime.ops import Array

__all__ = ["file_text"]

_ON_STACK = 16_384  # floats of scratch above which it is static, and the function not reentrant
_PLACE = """\
static int fewer_place(float at, int size) { /* a whole number as an index that is never outside */
    if (at < 0.0f) at += (float)size;
    return !(at > 0.0f) ? 0 : at >= (float)size ? size - 1 : (int)at;
}
"""


class Written(Protocol):
    """What was written for one sample."""

    body: list[str]
    sizes: list[int]
    constants: dict[str, str]

    def constant(self, kind: str, values: Array) -> str: ...


def file_text(name: str, inputs: int, outputs: int, writer: Written, *, stages: list[Stage], longest: int) -> str:
    """The whole; `stages` are those of a program that is a chain, `longest` is 0 where lengths do not vary."""
    together = _together(inputs, outputs, writer, stages) if stages else []
    static = "static " if sum(writer.sizes) > _ON_STACK else ""
    scratch = [f"{static}float value{place}[{max(1, size)}];" for place, size in enumerate(writer.sizes)]
    kind, time = ("int", f", int {NAME}") if longest else ("void", "")
    one, many = (
        f"{kind} {name}(const float *input, float *output{time})",
        f"{kind} {name}_batch(const float *input, float *output, int samples{time})",
    )
    said = f" {NAME} from 1 to {longest}; answers 0, or -1 for another." if longest else ""
    numbers = f"{inputs} numbers in, {outputs} numbers out, one sample after another."
    lines = [f"/* {name}: {numbers}{said} C99; -O2 is enough for gcc on x86-64, where "
             "it is made for several processors, and -O3 for others; link with -lm. */",
             "#include <math.h>", "#include <string.h>", "", one + ";", many + ";", ""]  # fmt: skip
    read = set(re.findall(r"constant\d+", "".join([*writer.body, *together])))  # of a view nothing may have been read
    lines += [line.format(constant) for line, constant in writer.constants.items() if constant in read]
    functions = {"fewer_place(": _PLACE, "fewer_add(": ADD, **ADD_TOGETHER}
    lines.append(APART)
    lines += [text for call, text in functions.items() if any(call in line for line in [*writer.body, *together])]
    # at high sparsity a layer may read nothing of what is before it
    unread = [f"(void)value{place};" for place in range(len(scratch))] + ["(void)input;"]
    guard = [f"if ({NAME} < 1 || {NAME} > {longest}) return -1;"] if longest else []
    done = ["return 0;"] if longest else []
    body = [*scratch, *guard, *writer.body, *unread, *done]
    lines += ["", _apart(one, name), *("    " + line for line in body), "}", "", _apart(many, name)]
    given = f", {NAME}" if longest else ""
    step = f"{name}_own(input + (long)i * {inputs}, output + (long)i * {outputs}{given});"
    lines += ["    int i = 0;", *("    " + line for line in [*guard, *together])]
    flash, where = _constant_bytes(lines), "static" if static else "on the stack"
    told = f"{flash} bytes of constants and {4 * sum(writer.sizes)} of scratch, {where}, for one sample"
    lines[0] = lines[0].replace(" */", f" {told}. */")
    lines += [f"    for (; i < samples; i++) {step}", *("    " + line for line in done), "}", ""]
    answer = "return " if longest else ""
    lines += [f"{one} {{ {answer}{name}_own(input, output{given}); }}",
              f"{many} {{ {answer}{name}_batch_own(input, output, samples{given}); }}", ""]  # fmt: skip
    return "\n".join(lines)


def _apart(head: str, name: str) -> str:
    """The beginning of the function that an entry calls, which a compiler may make for several processors."""
    own = re.sub(rf"\b({name}|{name}_batch)\(", r"\1_own(", head)
    return f"FEWER_APART static {own} {{"


def _constant_bytes(lines: list[str]) -> int:
    """What all constants of a file take where a long has four bytes."""
    found = re.findall(r"static const (float|unsigned \w+) \w+\[(\d+)\]", "\n".join(lines))
    return sum({"unsigned char": 1, "unsigned short": 2}.get(kind, 4) * int(count) for kind, count in found)


def _together(inputs: int, outputs: int, writer: Written, stages: list[Stage]) -> list[str]:
    """Lines that take many samples at once, as long as there are so many."""
    body, widest = batch_body(stages, inputs, writer.constant)
    static = "static " if 2 * widest * TOGETHER > _ON_STACK else ""
    both = "for (int n = 0; n < {}; n++) for (int f = 0; f < {}; f++)"
    place = f"here[f * {TOGETHER} + n]"
    return [
        f"{static}float first[{widest * TOGETHER}], second[{widest * TOGETHER}];",
        f"for (; i + {TOGETHER} <= samples; i += {TOGETHER}) {{",
        f"    const float *from = input + (long)i * {inputs};",
        f"    float *to = output + (long)i * {outputs}, *here = first, *there = second;",
        f"    {both.format(TOGETHER, inputs)} {place} = from[n * {inputs} + f];",
        *("    " + line for line in body),
        f"    {both.format(TOGETHER, outputs)} to[n * {outputs} + f] = {place};",
        "}",
    ]
