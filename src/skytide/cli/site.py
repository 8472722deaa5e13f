"""`skytide site`: a process with rows, which tells a coordinator as little as its protocol allows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skytide.cli._network import needing, stop_at_signals, verbose_option
from skytide.cli._voice import Voice, log_to_standard_error
from skytide.errors import InputError

if TYPE_CHECKING:
    from skytide.runtime.network.feeder import Feed, Feeder

INTERRUPTED = 130


@click.command("site", short_help="Feeds a coordinator with the rows of one site.")
@click.option("--connect", "url", metavar="URL", required=True, help="The coordinator: ws://host:port, or wss://.")
@click.option("--data", metavar="FILE", required=True, help="Local rows: a .csv, .jsonl or .ndjson file, or - .")
@click.option("--id", "id_column", metavar="COL", required=True, help="The column that names objects.")
@click.option("--name", metavar="NAME", help="The site's name. Default: the one in its token.")
@click.option("--token-file", metavar="FILE", help="The site's token, where the coordinator asks for one.")
@click.option("--certificate", metavar="PEM", help="What the coordinator's certificate must be signed by.")
@click.option("--format", "form", type=click.Choice(["csv", "ndjson"]), help="Default: by the file's name; csv for - .")
@click.option("--follow", is_flag=True, help="Go on as the file grows, is cut off, or replaced.")
@click.option("--stay", is_flag=True, help="Stay connected at the end of the data: the values are not final.")
@click.option("--state", metavar="FOLDER", help="With --follow or - : keep across crashes what the site has.")
@verbose_option
def command(
    url: str,
    data: str,
    id_column: str,
    name: str | None,
    token_file: str | None,
    certificate: str | None,
    form: str | None,
    follow: bool,
    stay: bool,
    state: str | None,
    verbose: bool,
) -> int:
    """Feed a coordinator with the rows of one site.

    Each row is the new values of an object; the columns are those that the coordinator compares. A row whose values are
    all empty takes the object out. An id that is a whole number is one, also where it is text. At the end of the data
    the values are final, and the site goes; with --follow or --stay it stays, until Ctrl-C or SIGTERM.

    A plain file with a row that cannot be used is refused. In a stream such a row is reported, and passed over.

    \b
      skytide site --connect ws://127.0.0.1:8750 --name shop-1 --data shop-1.csv --id product --follow
      sensor | skytide site --connect ws://127.0.0.1:8750 --name roof --data - --format ndjson --id sensor --state roof
    """
    import asyncio
    import os

    # Before the kernel is loaded: a site has few objects, and no time to compile. 0 in the environment compiles.
    os.environ.setdefault("SKYTIDE_PLAIN", "1")
    with needing("a site", "numpy and websockets"):
        from skytide.runtime.network.feeder import STANDARD_INPUT, Feed
        from skytide.runtime.network.rows import form_of
        from skytide.runtime.network.sources import is_plain

    feed = Feed(data=data, id_column=id_column, form=form, follow=follow, stay=stay)
    if follow and (data == STANDARD_INPUT or not is_plain(data)):
        raise click.UsageError("only a plain file can be followed; a stream is read to its end anyway")
    if state is not None and not feed.streams:
        raise click.UsageError("--state is for --follow and streams; a plain file is read again")
    if data != STANDARD_INPUT:
        is_plain(data)
        if form is None:
            form_of(data)
    token = None if token_file is None else _token(token_file)
    name = name or (None if token is None else _name_in(token, token_file))
    if name is None:
        raise click.UsageError("the site has no name; give --name, or --token-file")
    log_to_standard_error(verbose)
    if token is not None and not _secure(url):
        Voice.here().warn("skytide site: without TLS (wss://) the token can be read on its way")
    settings = {"url": url, "name": name, "token": token, "certificate": certificate}
    return asyncio.run(_run(feed, state, settings))


async def _run(feed: Feed, state: str | None, settings: dict[str, Any]) -> int:
    import asyncio

    from skytide.runtime.network.feeder import Feeder
    from skytide.runtime.network.memory import Memory
    from skytide.runtime.network.site import AsyncSite

    stop, voice = asyncio.Event(), Voice.here()
    stop_at_signals(stop)
    memory = None if state is None else Memory(state, settings["name"])
    try:
        site = AsyncSite(**settings, hold=True, key=None if memory is None else memory.key)
        feeder = Feeder(feed, site, memory, lambda text: voice.warn(f"skytide site: {text}"))
        ended = await feeder.run_until(stop)
    finally:
        if memory is not None:
            memory.close()
    voice.note(f"skytide site: {_told(feeder)}")
    return 0 if ended or feed.streams or feed.stay else INTERRUPTED


def _told(feeder: Feeder) -> str:
    site = feeder.site
    bad = f", {feeder.bad} bad" if feeder.bad else ""
    return (
        f"{site.name}: {site.rows} rows, {site.acknowledged} acknowledged, {site.refused} refused{bad}, "
        f"{site.sent} bytes sent, {site.received} received"
    )


def _token(path: str) -> str:
    """The token of a file, which has nothing else."""
    try:
        with Path(path).open("rb") as stream:
            text = stream.read(4096).decode("ascii").strip()
    except OSError as problem:
        raise InputError(problem.strerror or "it cannot be read", file=path) from None
    except UnicodeDecodeError:
        text = ""
    if not text or any(not character.isprintable() or character.isspace() for character in text):
        raise InputError("this is not a token", file=path, remedy="make one with skytide token")
    return text


def _secure(url: str) -> bool:
    """Whether nobody between here and the coordinator can listen."""
    import ipaddress
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    try:
        return parts.scheme in ("wss", "https") or ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname == "localhost"


def _name_in(token: str, path: str | None) -> str:
    role, _, rest = token.partition(".")
    if role != "site" or not rest.partition(".")[0]:
        raise InputError("this is not the token of a site", file=path, remedy="make one with skytide token")
    return rest.partition(".")[0]
