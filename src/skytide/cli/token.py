"""`skytide token`: the secret of a coordinator, and the tokens made with it."""

from __future__ import annotations

import click


@click.command("token", short_help="Tokens for sites and readers of a coordinator.")
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option("--secret-file", metavar="FILE", required=True, help="The file with the coordinator's secret.")
@click.option("--new", is_flag=True, help="Write a new secret to the file first, which must not be there yet.")
@click.option("--reader", is_flag=True, help="For readers of the answer, instead of sites.")
def command(names: tuple[str, ...], secret_file: str, new: bool, reader: bool) -> None:
    """Print the tokens of these sites, a line each; who has one can be that site, and no other.

    A token is always the same for a name and a secret, so nothing is stored. The coordinator takes one back by its name
    (revoked), and all of them with a new secret.

    \b
      skytide token --secret-file secret --new
      skytide token --secret-file secret berlin > berlin.token
      skytide token --secret-file secret --reader anna
    """
    from skytide.runtime.network.secrets import issue, new_secret, read_secret

    if not names and not new:
        raise click.UsageError("no name is given; name a site, or a reader with --reader")
    secret = new_secret(secret_file) if new else read_secret(secret_file)
    for token in [issue(secret, "reader" if reader else "site", name) for name in names]:
        click.echo(token)
