"""The papers' own experiments, with their numbers beside ours."""
