"""Commands of the command line, run in the process of a test."""

import functools

import typer.testing

from kernelmaps.cli import load_commands

# The tree of commands does not change; to build it takes longer than many a command.
typer.testing._get_command = functools.cache(typer.testing._get_command)


app = load_commands()


def invoke(*arguments):
    arguments = [str(item) for item in arguments]
    return typer.testing.CliRunner().invoke(app, arguments, env={"COLUMNS": "140", "NO_COLOR": "1"})


def run(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def assert_refused(code, match, *arguments):
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    message = " ".join(result.stderr.split())
    assert match in message, message
    return result
