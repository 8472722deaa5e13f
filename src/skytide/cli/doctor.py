"""`skytide doctor`: what the machine has and lacks, and the remedy."""

from __future__ import annotations

import click


@click.command("doctor", short_help="What the machine lacks, and the remedy.")
@click.option("--json", "as_json", is_flag=True, help="For machines: one JSON object.")
def command(as_json: bool) -> int:
    """What the machine has and lacks, and the remedy.

    Exit status 0 if the core works (skylines, windows, files), 1 otherwise. Spark, plots, peers and a browser are for
    parts that not everybody needs.
    """
    import json

    from skytide.cli._checks import examine
    from skytide.cli._voice import Voice

    findings = examine()
    healthy = all(finding.ok for finding in findings if finding.core)
    if as_json:
        checks = [finding.as_record() for finding in findings]
        click.echo(json.dumps({"ok": healthy, "checks": checks}, ensure_ascii=False))
        return 0 if healthy else 1
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        state = "ok     " if finding.ok else "missing"
        remedy = "" if finding.ok or not finding.remedy else f"; {finding.remedy}"
        click.echo(f"{state}  {finding.name.ljust(width)}  {finding.detail}{remedy}")
    Voice.here().note("The core works." if healthy else "The core does not work; see the lines marked missing.")
    return 0 if healthy else 1
