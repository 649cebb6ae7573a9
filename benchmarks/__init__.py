"""adk_nb beside google-adk and a floor, on the same work with a model that answers at once."""
