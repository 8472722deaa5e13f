"""Continuous Fragmented Skylines over Distributed Streams (ICDE 2014): the experiments of Section V."""
