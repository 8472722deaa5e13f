"""What `import skytide` costs."""

import subprocess
import sys


def test_importing_the_package_loads_no_compiled_code_no_spark_and_no_plotting() -> None:
    probe = (
        "import skytide, sys; print(sorted(set(sys.modules) & {'numba', 'pyspark', 'matplotlib', 'click', 'pandas'}))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
