"""The methods, each with its spec, its plan and its run; the registry knows them all."""
