"""A home for Spark in a temporary folder: what its workers write goes there, and not beside the package."""

from __future__ import annotations

from pathlib import Path


def spark_home(folder: Path) -> Path:
    """The folder, with links to all that the installed pyspark has but its folder for work."""
    import pyspark

    folder.mkdir(parents=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (folder / entry.name).symlink_to(entry)
    return folder
