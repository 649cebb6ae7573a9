"""Keys of model services: %key."""
