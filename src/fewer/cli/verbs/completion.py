"""`fewer completion SHELL`: a script that completes verbs, options, tasks and names; made from the parser itself.

The script is static: pressing Tab starts no Python.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from fewer.core.errors import UserError
from fewer.core.settings import nearest

SHELLS = ("bash", "zsh", "fish")

INSTALL = """install it:
  bash   fewer completion bash > ~/.local/share/bash-completion/completions/fewer
  zsh    fewer completion zsh > a folder of $fpath, as _fewer
  fish   fewer completion fish > ~/.config/fish/completions/fewer.fish"""

# what may stand after an option or as an argument, by its name or by verb and name where verbs differ: lists, or where
# in the package they are
_VALUES: dict[str, tuple[str, ...] | str] = {
    "engine": ("auto", "plain", "cohort", "sparse"),
    "device": ("cpu", "cuda"),
    "precision": ("float32", "float64", "bfloat16"),
    "values": ("float32", "float16", "int8"),
    "how": ("majority", "mean", "weighted", "best"),
    "split": ("train", "validation", "test"),
    "to": ("c", "onnx"),
    "scale": ("quick", "full"),
    "prune": ("magnitude", "lamp", "snip", "grasp", "synflow", "random", "lottery", "dense"),
    "harden": ("fgsm:0.3", "fast:0.3", "free:0.3", "pgd:0.3", "trades:0.3", "mart:0.3"),
    "attack": ("fgsm:0.3", "pgd:0.3", "apgd:0.3", "apgd-t:0.3", "fab-t:0.3", "square:0.3", "suite:0.3"),
    "optimizer": ("adam", "adamw", "adabelief", "sgd"),
    "log": ("tensorboard",),
    "on": ("processes", "ray", "inline"),
    "choose_on": ("train", "validation", "test"),
    "contest": ("core", "transfer", "stage1"),
    "dtype": ("float32", "uint8"),
    "layout": ("2022", "2023", "2024"),
    "shell": SHELLS,
    "study": "fewer.studies.study:studies",
    "bench name": "fewer.bench.overview:benches",
    "submit split": ("test", "heldout", "validation"),
    "submit contest": ("core", "transfer", "stage1", "all"),
    "task": "fewer.core.registry:systems",
    "model": "fewer.zoo:names",
    "file": "fewer.zoo:names",
}


Option = tuple[str, str, bool, tuple[str, ...]]  # name, help, takes a value, the values


@dataclass(frozen=True)
class Verb:
    """What can be typed after a verb."""

    name: str
    help: str
    options: tuple[Option, ...]
    arguments: tuple[str, ...]  # words for what is no option; files always


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.epilog, parser.formatter_class = INSTALL, argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", help=", ".join(SHELLS))


def run(arguments: argparse.Namespace) -> None:
    """Print the script."""
    from fewer.cli.show import show

    if arguments.shell not in SHELLS:
        raise UserError(f"shell {arguments.shell!r}", f"one of {', '.join(SHELLS)}", nearest(arguments.shell, SHELLS))
    script = {"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell](list(verbs()))
    show({"shell": arguments.shell, "script": script} if arguments.json else script, arguments.json)


def verbs() -> Iterator[Verb]:
    """Every verb of the parser."""
    from fewer import cli

    top = cli.parser()
    for name, part in top.verbs.items():
        options, words = list[Option](), list[str]()
        for action in _actions(part):
            if isinstance(action, argparse._SubParsersAction):
                words += action.choices
            elif not action.option_strings:
                words += _values(name, action.dest)
            else:
                takes = action.nargs != 0
                longest = max(action.option_strings, key=len)
                options.append((longest, _line(action.help), takes, _values(name, action.dest) if takes else ()))
        unique = {option[0]: option for option in reversed(options)}
        yield Verb(name, cli.offered()[name][1], tuple(reversed(unique.values())), tuple(words))


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Those of a verb and of what may follow it, as in `fewer data nowcast`."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                yield from (inner for inner in _actions(part) if inner.option_strings)


def _values(verb: str, name: str) -> tuple[str, ...]:
    found = _VALUES.get(f"{verb} {name}", _VALUES.get(name, ()))
    if isinstance(found, tuple):
        return found
    module, _, attribute = found.partition(":")
    given = getattr(importlib.import_module(module), attribute)
    return tuple(given() if callable(given) else given)


def _line(text: str | None) -> str:
    """Help that no shell can misread."""
    return "".join(c for c in (text or "") if c.isalnum() or c in " ,.;-_/()<>=").strip()


def bash(verbs: list[Verb]) -> str:
    """One function with two tables."""
    after = [
        f'    "{verb.name} {option}") COMPREPLY=($(compgen -W "{" ".join(values)}" -- "$word")); return;;'
        for verb in verbs
        for option, _, _, values in verb.options
        if values
    ]
    files = [
        f'"{verb.name} {option}"' for verb in verbs for option, _, takes, values in verb.options if takes and not values
    ]
    plain = [
        f'    {verb.name}) options="{" ".join(o[0] for o in verb.options)}"; words="{" ".join(verb.arguments)}";;'
        for verb in verbs
    ]
    return "\n".join(
        [
            "# bash completion for fewer; made by `fewer completion bash`",
            "_fewer() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
            '  local verb="${COMP_WORDS[1]}" options="" words=""',
            "  COMPREPLY=()",
            "  if ((COMP_CWORD == 1)); then",
            f'    COMPREPLY=($(compgen -W "{" ".join(v.name for v in verbs)} --help --version" -- "$word")); return',
            "  fi",
            '  case "$verb $before" in',
            *after,
            f"    {'|'.join(files)}) return;;",  # the shell's own names of files
            "  esac",
            '  case "$verb" in',
            *plain,
            "  esac",
            '  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$word"))',
            '  else COMPREPLY=($(compgen -W "$words" -- "$word")); fi',
            "}",
            "complete -o default -F _fewer fewer",
        ]
    )


def zsh(verbs: list[Verb]) -> str:
    """With a sentence beside each verb and option."""
    after = [
        f'    "{verb.name} {option}") compadd {" ".join(values)}; return;;'
        for verb in verbs
        for option, _, _, values in verb.options
        if values
    ]
    options = [
        f"    {verb.name}) options=({' '.join(_pair(option, words) for option, words, _, _ in verb.options)});;"
        for verb in verbs
    ]
    return "\n".join(
        [
            "#compdef fewer",
            "# made by `fewer completion zsh`",
            "_fewer() {",
            "  local -a verbs options",
            f"  verbs=({' '.join(_pair(verb.name, verb.help) for verb in verbs)})",
            "  if (( CURRENT == 2 )); then _describe verb verbs; return; fi",
            '  case "${words[2]} ${words[CURRENT-1]}" in',
            *after,
            "  esac",
            '  case "${words[2]}" in',
            *options,
            "  esac",
            "  if [[ ${words[CURRENT]} == -* ]]; then _describe option options; return; fi",
            '  case "${words[2]}" in',
            *[f"    {verb.name}) compadd {' '.join(verb.arguments)};;" for verb in verbs if verb.arguments],
            "  esac",
            "  _files",
            "}",
            'if [ "$funcstack[1]" = "_fewer" ]; then _fewer "$@"; else compdef _fewer fewer; fi',
        ]
    )


def _pair(name: str, words: str) -> str:
    return f"'{name}:{_line(words)}'"


def fish(verbs: list[Verb]) -> str:
    """A line for everything that can be typed."""
    lines = ["# made by `fewer completion fish`"]
    for verb in verbs:
        lines.append(f"complete -c fewer -n __fish_use_subcommand -f -a {verb.name} -d '{_line(verb.help)}'")
        seen = f"complete -c fewer -n '__fish_seen_subcommand_from {verb.name}'"
        if verb.arguments:
            lines.append(f"{seen} -a '{' '.join(verb.arguments)}'")
        for option, words, takes, values in verb.options:
            given = f" -x -a '{' '.join(values)}'" if values else " -r" if takes else ""
            lines.append(f"{seen} -l {option.removeprefix('--')}{given} -d '{words}'")
    return "\n".join(lines)
