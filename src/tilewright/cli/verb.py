# SPDX-License-Identifier: Apache-2.0
"""`@verb`: what every verb has in common. It returns an `Answer`; `--json` and `--debug` are taken care of here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from .console import Answer, Console


class SectionedOption(click.Option):
    """An option that help lists in a section of its own."""

    def __init__(self, *args: Any, section: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.section = section


class Verb(click.Command):
    """A command that prints the `Answer` it returns, as text or with --json as JSON, and exits with its status."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        asking("json", "Answer in JSON.")(self)
        asking("debug", "Show tracebacks of errors.")(self)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those of each section together."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """Return what the verb returned, after printing it if it is an answer."""
        found = super().invoke(ctx)
        if isinstance(found, Answer):
            ctx.ensure_object(Console).say(found)
            ctx.exit(found.exit_code)
        return found


def asking(name: str, words: str) -> Callable[[Any], Any]:
    """Return the decorator that adds a flag which the console remembers, such as --json.

    >>> [option.name for option in asking("json", "Answer in JSON.")(click.Command("greet")).params]
    ['json']
    """

    def remember(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            setattr(ctx.ensure_object(Console), name, True)

    return click.option(f"--{name}", is_flag=True, expose_value=False, callback=remember, help=words)


follow_links = click.option("--follow-links", is_flag=True, help="Follow links that lead out of a directory.")


def verb(name: str, **settings: Any) -> Callable[[Callable[..., Any]], Verb]:
    """Return the decorator that makes a function the verb of this name.

    >>> @verb("greet")
    ... def command() -> Answer:
    ...     "Say hello."
    ...     return Answer("hello", {"said": "hello"})
    >>> [option.opts[0] for option in command.params]
    ['--json', '--debug']
    """
    return click.command(name, cls=Verb, **settings)
