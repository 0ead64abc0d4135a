# SPDX-License-Identifier: Apache-2.0
"""`tilewright completion bash|zsh|fish`: the script that completes verbs and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .console import Answer
from .program import verb

_INSTALL = {
    "bash": 'eval "$(tilewright completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$(tilewright completion zsh)"  # in ~/.zshrc',
    "fish": "tilewright completion fish | source  # in ~/.config/fish/config.fish",
}


@verb("completion")
@click.argument("shell", type=click.Choice(list(_INSTALL)))
def command(shell: str) -> Answer:
    """Print the completion script of a shell.

    \b
    eval "$(tilewright completion bash)"        in ~/.bashrc
    eval "$(tilewright completion zsh)"         in ~/.zshrc
    tilewright completion fish | source         in ~/.config/fish/config.fish
    """
    completion_class = get_completion_class(shell)
    assert completion_class is not None  # click knows these three
    root = click.get_current_context().find_root().command
    # not source(), which runs the shell to ask its version; the environment variable is click's convention
    completer = completion_class(root, {}, "tilewright", "_TILEWRIGHT_COMPLETE")
    script = completer.source_template % completer.source_vars()
    return Answer(script, {"shell": shell, "script": script, "install": _INSTALL[shell]})
