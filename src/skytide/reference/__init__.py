"""Slow oracles that define the truth: one module per problem, plain Python, so simple that they are right by reading.

They are for tests, benchmarks and `skytide verify`. They share no code with what they check, and their cost is of no
concern: every answer is computed from its definition, anew at every instant. Rows are sequences of numbers (or of
anything ordered) and smaller is better in every column; docs/semantics.md says what the words mean.
"""
