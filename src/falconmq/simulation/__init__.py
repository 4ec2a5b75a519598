"""Queue managers in one process under a virtual clock, with seeded faults (docs/simulation.md)."""
