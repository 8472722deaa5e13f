"""`skytide coordinator`: the process that sites connect to, and that has the answer."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import click

from skytide.cli._network import needing, stop_at_signals, verbose_option
from skytide.cli._voice import Voice, log_to_standard_error

if TYPE_CHECKING:
    from skytide.runtime.network.config import Config


class _Configured(click.Command):
    """A command with an option for each key of the configuration, made when they are asked for."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its parameters; those of the configuration between the file and the rest."""
        first, *rest = super().get_params(ctx)
        return [first, *_options(), *rest]


@cache
def _options() -> list[click.Parameter]:
    from dataclasses import fields

    from skytide.runtime.network.config import Config, about

    made: list[click.Parameter] = []
    for field in fields(Config):
        many = field.default == ()
        text = about(field.name)
        text = text[0].upper() + text[1:] + (". Repeatable." if many else ".")
        if isinstance(field.default, int | float | str):
            text += f" [default: {_shown(field.default)}]"
        made.append(
            click.Option([f"--{field.name.replace('_', '-')}", field.name], metavar="VALUE", multiple=many, help=text)
        )
    return made


def _shown(default: float | str) -> str:
    return f"{default:g}s" if isinstance(default, float) else str(default)


@click.command("coordinator", cls=_Configured, short_help="Serves the skyline of what many sites have.")
@click.argument("config", metavar="[CONFIG.toml]", required=False)
@verbose_option
def command(config: str | None, verbose: bool, **options: Any) -> None:
    """Serve the skyline of what many sites have: one process, one port, one folder.

    Sites come with `skytide site`. Readers ask for /skyline (the answer now), /changes (as it changes), /ledger and
    /metrics. CONFIG.toml has the tables [coordinator], [query] and [limits]; the options below are its keys, and win.
    Durations are like 500ms, 2s, 15m. It listens on this machine alone, unless a secret is given with which tokens are
    made (see `skytide token`). Ctrl-C and SIGTERM end it; the next start goes on from its folder.

    \b
      skytide coordinator --data state --min price --max rating
      skytide coordinator --data state --protocol fragmented --max packets --max "var(volume)"
    """
    import asyncio

    with needing("the coordinator", "starlette, uvicorn and websockets"):
        from skytide.runtime.network.config import Config
        from skytide.runtime.network.coordinator import Coordinator

    told = Config.of(options) if config is None else Config.read(config, options)
    log_to_standard_error(verbose)
    asyncio.run(_serve(Coordinator(told), told))


async def _serve(coordinator: Any, config: Config) -> None:
    import asyncio

    stop, voice = asyncio.Event(), Voice.here()
    stop_at_signals(stop)
    await coordinator.run(stop=stop, started=lambda host, port: voice.note(_greeting(config, host, port)))


def _greeting(config: Config, host: str, port: int) -> str:
    from skytide.runtime.network.config import is_loopback

    address = f"{f'[{host}]' if ':' in host else host}:{port}"
    secure = "" if config.certificate is None else "s"
    proof = "" if config.secret_file is None else "-H 'Authorization: Bearer TOKEN' "
    clear = " (without TLS: tokens can be read on their way)" if not secure and not is_loopback(host) else ""
    return (
        f"skytide coordinator: sites connect to ws{secure}://{address}{clear}; "
        f"the answer: curl {proof}http{secure}://{address}/skyline"
    )
