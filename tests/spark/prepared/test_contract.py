"""What every pipeline says of itself, and how its options are read."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from skytide.errors import OptionError
from skytide.spark.prepared import find, pipelines


@pytest.mark.parametrize("name", sorted(pipelines()))
def test_options_are_the_keywords_of_build(name: str) -> None:
    pipeline = find(name)
    keywords = [
        one.name
        for one in inspect.signature(pipeline.build).parameters.values()
        if one.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    assert [option.name for option in pipeline.options] == keywords
    assert {"time", "id"} <= set(pipeline.output) and pipeline.rules and pipeline.inputs


def test_a_pipeline_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(OptionError, match="box-scores, connections"):
        find("horoscopes")


def test_finding_the_pipelines_needs_no_pyspark() -> None:
    probe = "import sys; from skytide.spark.prepared import pipelines; pipelines(); print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
