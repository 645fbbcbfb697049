"""`fewer completion SHELL`: a script that completes verbs, options, tasks and names; made from the parser itself.

The script is static: pressing Tab starts no Python.
"""

from __future__ import annotations

import argparse
from typing import Any

from fewer.cli.words import is_numeric, offer, offered_by
from fewer.core.errors import UserError
from fewer.core.settings import either, nearest

SHELLS = ("bash", "zsh", "fish")

INSTALL = """install it:
  bash   fewer completion bash > ~/.local/share/bash-completion/completions/fewer
  zsh    fewer completion zsh > a folder of $fpath, as _fewer
  fish   fewer completion fish > ~/.config/fish/completions/fewer.fish"""


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments."""
    parser.epilog, parser.formatter_class = INSTALL, argparse.RawDescriptionHelpFormatter
    offer(parser.add_argument("shell", help=either(SHELLS)), SHELLS)


def run(arguments: argparse.Namespace) -> None:
    """Print the script."""
    from fewer.cli.show import show

    if arguments.shell not in SHELLS:
        raise UserError(f"shell {arguments.shell!r}", f"one of {', '.join(SHELLS)}", nearest(arguments.shell, SHELLS))
    written = script(arguments.shell)
    show({"shell": arguments.shell, "script": written} if arguments.json else written, arguments.json)


def script(shell: str) -> str:
    """What that shell reads."""
    import shtab

    from fewer import cli

    top = cli.parser()
    _complete(top, shell)
    text: str = shtab.complete(top, shell)
    # where no word fits, bash completes names of files
    return text.replace("complete -o bashdefault -F", "complete -o bashdefault -o default -F")


def _complete(parser: argparse.ArgumentParser, shell: str) -> None:
    """Tell shtab the words of every argument."""
    colon = "\\:" if shell == "zsh" else ":"  # in zsh a plain one ends a part of what describes an argument
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                _complete(part, shell)
        elif action.nargs != 0 and not is_numeric(action):
            words, or_file = offered_by(action)
            if or_file:
                vars(action)["complete"] = _words_or_files(action.dest, words)
            else:
                action.choices = [word.replace(":", colon) for word in words]
            if isinstance(action.metavar, str):
                action.metavar = action.metavar.replace(":", colon)


def _words_or_files(name: str, words: list[str]) -> Any:
    import shtab

    if not words:
        return shtab.FILE
    listed, function = " ".join(words), f"_fewer_{name}"
    return {
        "bash": function,
        "zsh": function,
        "fish": f"{listed} (__fish_complete_path (commandline -ct))",
        "preamble": {
            "bash": f'{function}() {{ compgen -W "{listed}" -- "$1"; compgen -f -- "$1"; }}',
            "zsh": f"{function}() {{ compadd -- {listed}; _files; }}",
        },
    }
