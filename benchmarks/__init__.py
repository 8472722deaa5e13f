"""Benchmarks: each checks its answers, names the machine and the versions, and counts work beside seconds."""
