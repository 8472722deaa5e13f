"""What autodoc makes of docstrings: types as the code writes them, Markdown's fences, and links by short names."""

from __future__ import annotations

import inspect
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode


class _Written:
    """A type whose text is what stands in the code, not what its aliases stand for."""

    def __init__(self, text: object) -> None:
        self.text = text if isinstance(text, str) else inspect.formatannotation(text)

    def __repr__(self) -> str:
        return self.text


def as_written(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """The signature of a class, function or method, from its own annotations."""
    if what not in {"class", "exception", "function", "method"} or signature is None:
        return None
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    empty = inspect.Parameter.empty
    parameters = [
        one if one.annotation is empty else one.replace(annotation=_Written(one.annotation))
        for one in found.parameters.values()
        if one.name != "self" or what != "method"
    ]
    given = empty if what in {"class", "exception"} else found.return_annotation
    text = str(found.replace(parameters=parameters, return_annotation=empty)).replace("<factory>", "...")
    return text, None if given is empty else repr(_Written(given))


def fences(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Code between fences of Markdown, as a directive with the code indented."""
    found, inside = list[str](), False
    for line in lines:
        if line.strip().startswith("```"):
            inside = not inside
            found += [f".. code-block:: {line.strip()[3:] or 'none'}", ""] if inside else [""]
        else:
            found.append(f"   {line}" if inside else line)
    lines[:] = found


def not_worth_a_word(app: Sphinx, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Fields of tuples are in the signature already, and what Python writes about them says nothing."""
    return True if (inspect.getdoc(thing) or "").startswith("Alias for field number") else None


def by_short_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.reference | None:
    """A type that is named without its module, if only one of that name is in the documents."""
    if node.get("refdomain") != "py":
        return None
    domain = env.domains["py"]
    assert isinstance(domain, PythonDomain)
    wanted = node["reftarget"].rpartition(".")[2]
    homes = [one for one in domain.objects if one.rpartition(".")[2] == wanted and not domain.objects[one].aliased]
    if len(homes) != 1:
        return None
    where = domain.objects[homes[0]]
    return make_refnode(app.builder, node["refdoc"], where.docname, where.node_id, content, homes[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", as_written)
    app.connect("autodoc-process-docstring", fences)
    app.connect("autodoc-skip-member", not_worth_a_word)
    app.connect("missing-reference", by_short_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
