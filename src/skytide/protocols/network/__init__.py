"""Both protocols between processes: frames, a site's side and the coordinator's side, as pure state machines."""
