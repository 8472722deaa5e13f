"""Agreement on an answer across sites: servers and clients as pure state machines, message in, messages out."""
