"""Objects under updates on Spark: the changes of their skyline from snapshot to snapshot, and of the frequent skyline.

A task packs its rows; one state per bucket of groups puts them in order and runs the engines of `skytide.Snapshots` and
`skytide.Frequent` over them. Nothing is dropped on the way: every update counts, however bad its object is by then.
"""
