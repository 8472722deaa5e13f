"""Everything that the first page claims, run and judged by one command; `skytide bench evidence`."""
