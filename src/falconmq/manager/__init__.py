"""The queue manager: MQDMPR's data model and events; synchronous, no I/O of its own."""
