"""Linear models on data larger than memory, from mergeable statistics."""
