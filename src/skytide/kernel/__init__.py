"""Compiled array code: the only place with numba. Everything takes oriented float64: smaller is better, no NaN."""
