"""What all tests share."""

import os

from hypothesis import settings

# Compiled code makes the first example slow, and timings have no place in tests. Where a change is judged, the same
# examples are drawn each time; elsewhere each run looks at new ones.
settings.register_profile("skytide", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("skytide")
