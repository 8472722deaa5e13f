"""Skytide beside its peers, on the same rows in the same run."""
