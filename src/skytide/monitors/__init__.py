"""Monitors keep an answer current on one machine."""
