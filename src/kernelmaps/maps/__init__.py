"""The transformers, one file per family: `fit` builds `spec_`, `transform` hands it to the engine."""
