"""What reaches standard error of what Spark says."""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import subprocess, sys, time
from skytide.spark.pipeline.quiet import filtered_stderr, stopping
child = "import sys, time; time.sleep({delay}); sys.stderr.write({text!r})"
text = ("WARNING: Using incubator modules: jdk.incubator.vector\\n"
        "Starting Streaming TransformWithStateInPandas Python worker.\\n\\n"
        "Streaming TransformWithStateInPandas Python worker received parameters.\\n\\n"
        "an error\\n\\nand its end\\n")
logged = "2026-01-01 00:00:00 ERROR Broadcast: failed\\n"
with filtered_stderr():
    process = subprocess.Popen([sys.executable, "-c", child.format(delay=0.3, text=text)])
print("ours", file=sys.stderr, flush=True)
process.wait()
time.sleep(0.5)
with filtered_stderr():
    process = subprocess.Popen([sys.executable, "-c", child.format(delay=0, text=logged)])
process.wait()
time.sleep(0.5)
with filtered_stderr():
    process = subprocess.Popen([sys.executable, "-c", child.format(delay=0.3, text=logged + "no log\\n")])
stopping.set()
process.wait()
time.sleep(0.5)
try:
    with filtered_stderr():
        subprocess.run([sys.executable, "-c", child.format(delay=0, text="why it ended\\n")])
        raise OSError
except OSError:
    print("the complaint", file=sys.stderr, flush=True)
"""


def test_noise_is_dropped_and_all_else_arrives_also_after_the_start() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    ours, logged = ["ours", "an error", "", "and its end"], ["2026-01-01 00:00:00 ERROR Broadcast: failed"]
    assert done.stderr.splitlines() == [*ours, *logged, "no log", "why it ended", "the complaint"]
