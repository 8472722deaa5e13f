"""Protocols on Spark: their server on the driver, their clients where the rows lie, one job for each round of messages.

A run of timestamps is a micro-batch's worth. `intake` brings its rows to buckets of clients, `engine` lets server and
buckets speak with each other, `tasks` is what a bucket does in a job, `record` makes the state after it durable. None
of these knows which protocol it serves: that is a `Rules` of `protocol`; `filtering` is one.
"""
