"""Objects whose values change in bulk, from snapshot to snapshot."""
