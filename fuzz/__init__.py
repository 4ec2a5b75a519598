"""Coverage-guided fuzzing of every decoder; see docs/fuzzing.md."""
