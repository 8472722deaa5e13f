"""The experiments of udom14."""
