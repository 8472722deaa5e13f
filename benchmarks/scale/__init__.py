"""How Skytide on Spark grows with rows, columns, windows, groups and machines; `skytide bench scale`."""
