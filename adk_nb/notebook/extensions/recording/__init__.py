"""Recording and replaying model answers: %record and %replay."""
