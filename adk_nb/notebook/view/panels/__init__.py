"""The panels of the package: each module registers one, whose script has the same name in `static`."""
