"""Two backends behind one: a requester on one device or host, a responder on another."""
