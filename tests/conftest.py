"""What all tests share."""

from hypothesis import settings

# Compiled code makes the first example slow, and timings have no place in tests.
settings.register_profile("skytide", deadline=None)
settings.load_profile("skytide")
