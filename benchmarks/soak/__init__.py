"""A streaming pipeline under load for a long time, while everything around it fails; `skytide bench soak`."""
