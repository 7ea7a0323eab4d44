"""What a person sees who asks the command line for help: its version, and an example of each command."""

import shlex
from importlib.metadata import version

import pytest
import typer

from attentest.cli.examples import EXAMPLES, show_examples
from attentest.cli.main import app, run

COMMAND = typer.main.get_command(app)


def test_the_version_is_printed_alone(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"attentest {version('attentest')}\n"


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_of_a_command_is_in_its_help_and_is_understood(name, capsys):
    program, *words = shlex.split(EXAMPLES[name])
    assert program == "attentest" and " ".join(words).startswith(name)
    context, command = typer.Context(COMMAND), COMMAND
    for _ in name.split():
        _, command, words = command.resolve_command(context, words)
    command.make_context(name, words, parent=context)  # parses the words, runs nothing
    assert run([*name.split(), "--help"]) == 0
    assert f"  Example: {EXAMPLES[name]}\n" in capsys.readouterr().out, "on one line, to be copied"


def test_a_command_without_an_example_is_not_accepted():
    other = typer.Typer()
    other.command("fly")(lambda: None)
    with pytest.raises(KeyError, match="fly"):
        show_examples(other)
