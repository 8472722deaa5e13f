"""Sliding-window skylines on Spark: prune where the rows lie, merge the few that are left, emit the exact changes.

`operator` builds the plan, `clock` maps event times to Spark's watermark and back, `prune` drops the rows of a part
that can never matter, `merge` keeps the candidates of the window, `processor` keeps the merge in Spark's state, `write`
brings the changes to sinks. docs/spark.md says why each step is exact.
"""
