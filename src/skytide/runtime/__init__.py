"""What moves the messages of the protocols: simulation."""
