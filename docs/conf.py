"""How Sphinx builds the documents: `make docs`. Warnings are errors, and nothing is asked of other hosts."""

from __future__ import annotations

import sys
from pathlib import Path

import skytide

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Skytide"
author = "the authors of Skytide"
version = release = skytide.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click", "commands", "docstrings"]
exclude_patterns = ["figures", "_ext", "evidence/papers/tasks"]
highlight_language = "none"
smartquotes = False

html_theme = "furo"
html_title = f"Skytide {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = html_show_copyright = False

myst_heading_anchors = 3

# Docstrings write code in single backticks, as Markdown does.
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
python_maximum_signature_line_length = 100

nitpicky = True
# Types of other packages, whose documents are on other hosts, and aliases that say by their name what they are.
_OTHERS = (
    r"(pa|np|npt|os|click)\..*|DataFrame|SparkSession|StreamingQuery|Path|Any|(Callable|Mapping)\b.*|Decimal|Fraction"
)
_ALIASES = "Booleans Boundaries Column Direction Distribution Floats Id Integers Kind MissingPolicy Rules ScoreFunction"
_ALIASES += " Row Table Theta"
nitpick_ignore_regex = [("py:class", _OTHERS), ("py:class", _ALIASES.replace(" ", "|"))]
