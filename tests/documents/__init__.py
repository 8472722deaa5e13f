"""What runs the examples of the documents."""
