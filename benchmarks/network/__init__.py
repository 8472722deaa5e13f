"""Coordinator and sites under load and faults."""
