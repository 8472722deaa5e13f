"""Everything that the README claims, run and judged by one command; `skytide bench evidence`."""
