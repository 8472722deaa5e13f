"""Objects in fragments over many sites: who is in the skyline of functions of their averages (papa14)."""
