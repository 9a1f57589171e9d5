"""The command that compiles ahead of use: warmup."""

from __future__ import annotations

from ._app import app
from ._shared import AsJson, command, say


@app.command()
@command
def warmup(json: AsJson = False) -> None:
    """Compile the loops of everyday use now, so that the first request does not wait.

    For images and servers: compiled loops are kept beside the package, or in the folder that the
    environment variable NUMBA_CACHE_DIR names.

    Example: `kernelmaps warmup`
    """
    import warnings
    from json import dumps

    from kernelmaps.commands.warming import warm_up

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that nobody will see
        done = warm_up()
    say(dumps(done.to_dict()) if json else str(done))
