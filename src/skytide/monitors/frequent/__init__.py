"""The frequent-skyline monitor: who is in enough of the last skylines, and who stayed for how long."""
